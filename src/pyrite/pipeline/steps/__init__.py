"""The steps that a stage offers, by kind. `Stage` has them all."""
