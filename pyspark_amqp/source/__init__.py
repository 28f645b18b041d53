"""Reading queues with Spark: streams, looking, and taking a queue whole.

Owns no state. Called by the data source (datasource.py).

    patience  trying again while a broker is away
    listing   which queues there are
    planning  which pieces the next batch has
    tasks     a piece's rows, on an executor
    stream    Spark's stream reader
    batch     Spark's batch readers: peek and drain

and for stream queues, of which nothing is taken:

    ranges        which offsets a batch has
    tail          where streams end
    retention     gaps between offsets, and losses
    stream_queue  Spark's readers of streams and replays
"""
