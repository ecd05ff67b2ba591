"""Stores that earlier versions of the monitor wrote."""
