"""The numerics of one half-step: layouts, count tables, axes and kernels, without ids or files."""
