"""Where coordinators and peers run: in processes that an instance starts, or as programs."""
