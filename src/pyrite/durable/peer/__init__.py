"""A virtual peer: it takes offers, works on parts, and asks to seal them."""
