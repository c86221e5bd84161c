"""How batches are split, put together and packed to travel."""
