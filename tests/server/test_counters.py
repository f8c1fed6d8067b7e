"""Prometheus's text format, with TensorFlow Serving's names."""

from keras_attention.server import counters


def test_histogram_counts_what_is_below_each_bound():
    histogram = counters.Histogram("h", ("a",), (1.0, 10.0))
    for value in (0.5, 1.0, 5.0, 100.0):
        histogram.add(value, 'x"\\\n')
    label = r'a="x\"\\\n"'
    assert histogram.lines() == [
        "# TYPE h histogram",
        f'h_bucket{{{label},le="1"}} 2',
        f'h_bucket{{{label},le="10"}} 3',
        f'h_bucket{{{label},le="+Inf"}} 4',
        f"h_sum{{{label}}} 106.5",
        f"h_count{{{label}}} 4",
    ]


def test_names_are_those_of_tensorflow_serving():
    meters = counters.Metrics()
    meters.count_request("m", "OK", "predict", "REST", 0.001)
    meters.count_request("m", "OK", "predict", "GRPC", 0.001)
    meters.count_batch("m", 3, 0.01, [0.0])
    meters.count_load("/m/1", True, 1.0)
    lines = meters.text(5).splitlines()
    serving = ":tensorflow:serving:"
    for line in (
        f'{serving}request_count{{model_name="m",status="OK"}} 2',
        f'{serving}request_latency_count{{model_name="m",API="predict",'
        'entrypoint="REST"} 1',
        f'{serving}batching:processed_batch_size_sum{{model_name="m"}} 3',
        ':tensorflow:cc:saved_model:load_attempt_count{model_path="/m/1",'
        'status="success"} 1',
        ":keras_attention:queued_rows 5",
    ):
        assert line in lines
