"""Tickets that a pyarrow client makes itself."""
import pyarrow as pa
import pyarrow.flight as flight

import test_pyarrow


def test_one_call():
    with test_pyarrow.Authorized() as client:
        rows = client.do_get(flight.Ticket(b"SELECT n_name FROM tpch.nation WHERE n_nationkey = 3")).read_all()
        assert rows.to_pydict() == {"n_name": ["CANADA"]}
        keys = pa.record_batch({"key": pa.array([3, 99, 1], pa.int64())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, keys.schema) as w:
            w.write(keys)
        ticket = flight.Ticket(b"SELECT n_name FROM tpch.nation WHERE n_nationkey = ?\0" + sink.getvalue().to_pybytes())
        assert client.do_get(ticket).read_all().to_pydict() == {"n_name": ["CANADA", "ARGENTINA"]}
