"""How a DAG, a pipeline, an execution and a run show themselves in a notebook: HTML that stands
alone, drawn again in place while something runs. Nothing here imports IPython, unless IPython asks.
"""
