"""One model for each paper; named sizes are functions in its module."""

from keras_attention.models import (
    lstm_encoder_decoder,
    luong,
    rnn_encoder_decoder,
    rnnsearch,
    transformer,
)
from keras_attention.models.lstm_encoder_decoder import LSTMEncoderDecoder
from keras_attention.models.luong import Luong
from keras_attention.models.rnn_encoder_decoder import RNNEncoderDecoder
from keras_attention.models.rnnsearch import RNNSearch
from keras_attention.models.seq2seq import Seq2Seq
from keras_attention.models.transformer import Transformer

__all__ = [
    "LSTMEncoderDecoder",
    "Luong",
    "RNNEncoderDecoder",
    "RNNSearch",
    "Seq2Seq",
    "Transformer",
    "luong",
    "lstm_encoder_decoder",
    "rnn_encoder_decoder",
    "rnnsearch",
    "transformer",
]
