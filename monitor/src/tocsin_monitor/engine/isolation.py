"""What becomes of the others when a detector raises: they go on, and only the signal at fault is quarantined."""

from collections.abc import Mapping

from tocsin_monitor.engine.block import DetectorInput, DetectorOutput
from tocsin_monitor.engine.engine_state import EngineState
from tocsin_monitor.engine.recovery import Recovery, StoredSignals
from tocsin_monitor.engine.signals import MonitoredSignal, QuarantinedSignal


def judge_apart(
    state: EngineState, inputs: Mapping[MonitoredSignal, DetectorInput]
) -> dict[MonitoredSignal, DetectorOutput]:
    """Judge signals whose block raised again, one by one. Those that raise are quarantined, and have no output.

    The block may have stopped half-way, so these detectors, and no others, are first rebuilt from the store.
    """
    with state.store.reading() as reader:
        known = StoredSignals.read(reader)
    by_name = {signal.name: signal for signal in inputs}
    for block in {signal.block for signal in inputs}:
        block.take_closed()  # what it found before it stopped is found again
    outputs: dict[MonitoredSignal, DetectorOutput] = {}
    for rebuilt in Recovery(state.store, state.places, known).rebuild([signal.row for signal in inputs]):
        if rebuilt.block is not None:
            state.places.enter(rebuilt.block)
        for new in rebuilt.signals:
            signal = by_name[new.name]
            with state.lock:
                state.places.release(signal.block, signal.place)
                signal.block, signal.place = new.block, new.place
            try:
                outputs[signal] = new.block.run({new.place: inputs[signal]})[new.place]
            except MemoryError:
                raise  # it is nobody's fault
            except Exception as error:
                _set_aside(state, signal, known.quarantine(signal.row, error))
        for quarantined in rebuilt.quarantined:
            _set_aside(state, by_name[quarantined.name], quarantined)
    return outputs


def _set_aside(state: EngineState, signal: MonitoredSignal, quarantined: QuarantinedSignal) -> None:
    state.forget(signal)
    with state.lock:
        state.quarantined[quarantined.name] = quarantined
    state.count()
    state.hub.publish("signal", {"name": quarantined.name, "change": "quarantined"})
