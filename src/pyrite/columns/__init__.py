"""What is done with batches of rows (Arrow): hash and split them, group, join and sort them, pack
them. Pure: it knows no engine and no processor. Modules here import pyarrow; import them late."""
