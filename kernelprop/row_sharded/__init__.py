"""Kernels beyond one device's memory: each device holds some rows, `kernelprop.row_sharded.propagation`."""
