"""What jobs on Spark and jobs on members share: a DAG is cut into sections, items are spread over
partitions and packed into packets. It knows neither Spark nor the network."""
