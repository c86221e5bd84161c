"""The life of a light job on members: plans, orders, the coordinator's part and each member's."""
