"""The reference as the equations are written: NumPy, float64 tables, no state.

Twin of `solutions.with_torch`, where the same mathematics is written as a model uses it.
"""
