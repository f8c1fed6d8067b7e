"""The files of the page `/`: whatever stands in this folder but for Python."""
