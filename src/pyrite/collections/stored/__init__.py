"""What all kinds share that store maps and lists outside of this process: keys and values as bytes,
places in lists, and the error that says why they cannot be used."""
