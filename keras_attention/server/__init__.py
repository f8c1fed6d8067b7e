"""A server of SavedModels that speaks TensorFlow Serving's protocol.

- A request comes in by `rest` or `grpc_services`, which turn it to arrays.
- `predictor` finds its model in `registry`, checks it and queues it.
- `batcher` takes what waits, and `execution` answers it in one call.
- `application` starts all this and ends it.
"""
