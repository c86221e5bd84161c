"""Where members run: in processes of this machine, in tasks of Spark, or where a person starts
them."""
