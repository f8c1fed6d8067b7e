"""`python -m keras_attention` is the command line."""

from keras_attention.cli import main

main()
