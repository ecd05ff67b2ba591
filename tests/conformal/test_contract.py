"""One list of checks that every scorer has to pass."""

import copy
import io
import pickle

import numpy as np
import pytest

from tests.cases import full
from tocsin.conformal import (
    SCORERS,
    W1ACAS,
    ExponentialDecay,
    GaussianTail,
    SlidingWindow,
    SplitConformal,
    load_scorer,
    save_scorer,
)
from tocsin.testing import check_scorer

STREAMS = 3

# Small enough that windows fill, rows move and batches end many times within a test.
MAKERS = {
    "w1acas recent": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=5, learning_rate=0.02),
    "w1acas extend": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=7, stride=2, prior="extend"),
    "w1acas sgd": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=4, optimizer="sgd", learning_rate=90.0),
    "w1acas smoothed": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=5, smoothing=3),
    "w1acas float64": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=5, dtype="float64"),
    "w1acas threads": lambda k=STREAMS: W1ACAS(k, alpha_c=0.1, window=30, batch=5, threads=2),
    "window": lambda k=STREAMS: SlidingWindow(k, window=20),
    "window smoothed": lambda k=STREAMS: SlidingWindow(k, window=20, smoothing=11),
    "split": lambda k=STREAMS: SplitConformal(k, calibration=25),
    "decay": lambda k=STREAMS: ExponentialDecay(k, decay=0.9, window=40),
    "gaussian": lambda k=STREAMS: GaussianTail(k, calibration=25),
}
STEPS = 400

#: These keep the whole list of checks in `make test`, and the others what `all_scorers` are asked.
WHOLE = ("w1acas recent", "w1acas extend", "window smoothed", "split", "gaussian")


def each_of(makers):
    cases = [make if name in WHOLE else full(make) for name, make in makers.items()]
    return pytest.mark.parametrize("make", cases, ids=makers.keys())


all_scorers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
every_scorer = each_of(MAKERS)
# A smoothed p-value is drawn anew each time: what speaks of ties and order is not meant for it.
UNSMOOTHED = {name: make for name, make in MAKERS.items() if "smoothed" not in name}
every_unsmoothed_scorer = each_of(UNSMOOTHED)


def hard_scores(seed=0, steps=STEPS, streams=STREAMS):
    """Scores with ties, constants, gaps, both infinities, huge and tiny values, and streams that start late."""
    rng = np.random.default_rng(seed)
    scores = np.abs(rng.normal(size=(steps, streams)))
    scores[:, -1] = np.round(scores[:, -1], 1)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    scores[rng.random(scores.shape) < 0.02] = np.inf
    scores[rng.random(scores.shape) < 0.02] = -np.inf
    scores[rng.random(scores.shape) < 0.02] = 1e300
    scores[rng.random(scores.shape) < 0.02] = 1e-300
    scores[rng.random(scores.shape) < 0.02] = 0.0
    scores[steps // 3 : steps // 2, 0] = 1.0
    scores[: steps // 5, 1] = np.nan
    return scores


def plain_scores(seed=0, steps=STEPS, streams=STREAMS):
    return np.abs(np.random.default_rng(seed).normal(size=(steps, streams)))


def same_state(one, other):
    one, other = one.state(), other.state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_every_scorer_is_on_the_list():
    assert {type(make()).__name__ for make in MAKERS.values()} == set(SCORERS)


@pytest.mark.slow
@all_scorers
def test_every_scorer_keeps_the_contract(make):
    check_scorer(make)


@all_scorers
def test_run_is_update_one_by_one(make):
    scores = hard_scores()
    learn = np.random.default_rng(1).random(scores.shape) < 0.8
    one, other = make(), make()
    p = one.run(scores, learn)
    np.testing.assert_array_equal(p, [other.update(row, mask) for row, mask in zip(scores, learn, strict=True)])
    same_state(one, other)


@every_scorer
def test_run_in_pieces_is_run(make):
    scores = hard_scores()
    one, other = make(), make()
    pieces = [other.run(piece) for piece in np.split(scores, [0, 1, 7, 150, 151, 399])]
    np.testing.assert_array_equal(one.run(scores), np.concatenate(pieces))


@pytest.mark.slow
@every_scorer
@pytest.mark.parametrize("at", [0, 13, 97, 333])
def test_saved_and_loaded_at_any_point_continues_exactly(make, at):
    scores = hard_scores()
    scorer = make()
    scorer.run(scores[:at])
    file = io.BytesIO()
    save_scorer(scorer, file)
    file.seek(0)
    restored = load_scorer(file)
    assert type(restored) is type(scorer)
    np.testing.assert_array_equal(restored.run(scores[at:]), scorer.run(scores[at:]))
    same_state(scorer, restored)


@every_scorer
def test_state_is_plain_arrays_and_a_copy(make):
    scorer = make()
    scorer.run(plain_scores(steps=60))
    state = scorer.state()
    assert all(isinstance(array, np.ndarray) and array.dtype.kind in "biufU" for array in state.values())
    expected = scorer.run(plain_scores(7))
    restored = type(scorer).from_state(state)
    for array in state.values():
        if array.ndim:
            array.fill(0)
    np.testing.assert_array_equal(restored.run(plain_scores(7)), expected)


@every_scorer
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))])
def test_copies_are_whole_and_independent(make, duplicate):
    scorer = make()
    scorer.run(hard_scores(steps=90))
    twin = duplicate(scorer)
    assert getattr(twin, "threads", None) == getattr(scorer, "threads", None)
    same_state(twin, scorer)
    expected = make()
    expected.run(hard_scores(steps=90))
    twin.run(plain_scores(5))
    same_state(scorer, expected)


@pytest.mark.slow
@every_unsmoothed_scorer
@pytest.mark.parametrize("at", [0, 13, 333])
def test_streams_taken_out_continue_exactly(make, at):
    scores = hard_scores()
    scorer = make()
    scorer.run(scores[:at])
    chosen = [2, 0]
    some = type(scorer).from_state(scorer.state(chosen))
    assert some.streams == 2
    expected = scorer.run(scores[at:])
    np.testing.assert_array_equal(some.run(scores[at:, chosen]), expected[:, chosen])
    for name, array in some.state().items():
        np.testing.assert_array_equal(array, scorer.state(chosen)[name], err_msg=name)


@every_scorer
def test_the_state_of_some_streams_holds_no_others(make):
    many, few = make(40), make(2)
    few.run(plain_scores(streams=2))
    many.run(plain_scores(streams=40))
    sizes = {name: (array.shape, array.dtype.kind) for name, array in many.state([3, 39]).items()}
    assert sizes == {name: (array.shape, array.dtype.kind) for name, array in few.state().items()}
    assert all(array.base is None or array.base.nbytes <= few.nbytes for array in many.state([3, 39]).values())


@pytest.mark.slow
@every_unsmoothed_scorer
@pytest.mark.parametrize(("before", "after"), [(0, 50), (50, 0), (333, 7), (100, 250)])
def test_adopted_streams_continue_exactly_and_disturb_nobody(make, before, after):
    """Streams that have learned anything go into a busy scorer; the other goes on by itself."""
    scorer, undisturbed, other = make(5), make(5), make(2)
    for one in (scorer, undisturbed):
        one.run(hard_scores(1, streams=5)[:before])
    other.run(hard_scores(2, streams=2)[:after])
    scorer.copy_from([3, 1], other)
    scores = hard_scores(3, streams=5)
    p, expected, alone = scorer.run(scores), undisturbed.run(scores), other.run(scores[:, [3, 1]])
    np.testing.assert_array_equal(p[:, [3, 1]], alone)
    np.testing.assert_array_equal(p[:, [0, 2, 4]], expected[:, [0, 2, 4]])
    for one, streams in ((other, [0, 1]), (undisturbed, [0, 2, 4])):
        mine = scorer.state([3, 1] if one is other else streams)
        for name, array in one.state(streams).items():
            np.testing.assert_array_equal(array, mine[name], err_msg=name)
    np.testing.assert_array_equal(scorer.quantile(0.2, [3, 1]), other.quantile(0.2))


@every_scorer
def test_an_adopted_stream_has_learned_the_same(make):
    """Smoothed or not; to adopt a fresh stream is to begin again."""
    scorer, other = make(), make(1)
    scorer.run(hard_scores())
    other.run(hard_scores(1)[:, :1])
    scorer.copy_from([1], other)
    scores = plain_scores(2)
    scorer.run(scores)
    other.run(scores[:, 1])
    for name, array in other.state().items():
        np.testing.assert_array_equal(scorer.state([1])[name], array, err_msg=name)
    scorer.copy_from([1], make(1))
    assert scorer.learned[1] == 0
    assert scorer.effective_size[1] == 0


@every_scorer
def test_a_scorer_adopts_only_its_like(make):
    scorer, untouched = make(), make()
    for one in (scorer, untouched):
        one.run(plain_scores())
    kind = type(scorer).__name__
    for other in (SlidingWindow(1, window=19), SplitConformal(1, calibration=24), GaussianTail(1, calibration=24)):
        if type(other) is type(scorer):
            message = r"(window=19|calibration=24) instead of 2[05]"
        else:
            message = f"scorer='{type(other).__name__}' instead of '{kind}'"
        with pytest.raises(ValueError, match=f"^other must be made like this scorer, got {message}"):
            scorer.copy_from([0], other)
    for streams in ([0], [0, 0], [0, 1, 2], []):
        with pytest.raises(ValueError, match=r"^streams must be 2 distinct indices, one for each of other's, got \["):
            scorer.copy_from(streams, make(2))
    for streams in ([0, STREAMS], [-1, 0]):
        with pytest.raises(ValueError, match=r"^streams must be indices from 0 to 2, got \["):
            scorer.copy_from(streams, make(2))
    with pytest.raises(ValueError, match=r"^streams must be one index or more, got \[\]"):
        scorer.state([])
    with pytest.raises(TypeError, match="streams must be a sequence of indices"):
        scorer.state(1)
    same_state(scorer, untouched)


@every_scorer
def test_memory_is_bounded(make):
    scorer = make()
    scorer.run(plain_scores(steps=50))
    before, size = scorer.nbytes, sum(array.nbytes for array in scorer.state().values())
    scorer.run(plain_scores(steps=5000))
    assert scorer.nbytes == before
    assert sum(array.nbytes for array in scorer.state().values()) == size


@every_scorer
def test_inputs_are_neither_modified_nor_kept(make):
    scores, learn = hard_scores(), np.ones((STEPS, STREAMS), dtype=bool)
    given_scores, given_learn = scores.copy(), learn.copy()
    one, other = make(), make()
    p = one.run(given_scores, given_learn)
    np.testing.assert_array_equal(given_scores, scores)
    np.testing.assert_array_equal(given_learn, learn)
    given_scores.fill(-1.0)
    given_learn.fill(False)
    p.fill(-1.0)
    other.run(scores)
    same_state(one, other)


@every_scorer
def test_any_layout_and_kind_of_array_is_taken(make):
    scores = np.round(10 * plain_scores(steps=80))
    expected = make().run(scores)
    read_only = scores.copy()
    read_only.flags.writeable = False
    for variant in (
        np.asfortranarray(scores),
        scores.astype(np.float32),
        scores.astype(np.int16),
        scores.astype(object),
        read_only,
        np.repeat(scores, 2, axis=1)[:, ::2],
        scores.tolist(),
    ):
        np.testing.assert_array_equal(make().run(variant), expected)


@every_scorer
def test_nan_gives_nan_and_leaves_the_stream_untouched(make):
    scores = plain_scores(steps=120)
    gappy = np.full((240, STREAMS), np.nan)
    places = np.sort(np.random.default_rng(0).permutation(240)[:120])
    gappy[places] = scores
    one, other = make(), make()
    p = one.run(gappy)
    np.testing.assert_array_equal(p[places], other.run(scores))
    assert np.isnan(np.delete(p, places, axis=0)).all()
    same_state(one, other)


@every_scorer
def test_streams_are_independent(make):
    """Whatever the others get, and wherever they have gaps, a stream's p-values are the same."""
    scores = plain_scores(steps=200)
    expected = make().run(scores)
    for k in range(STREAMS):
        disturbed = hard_scores(seed=k, steps=200)
        disturbed[:, k] = scores[:, k]
        np.testing.assert_array_equal(make().run(disturbed)[:, k], expected[:, k])


@every_unsmoothed_scorer
def test_held_scores_get_a_p_value_but_are_forgotten(make):
    scores = plain_scores(steps=150)
    held, learned, untouched = make(), make(), make()
    for scorer in (held, learned, untouched):
        scorer.run(scores)
    unusual = [9.0] * STREAMS
    np.testing.assert_array_equal(held.update(unusual, learn=False), learned.update(unusual))
    np.testing.assert_array_equal(held.run(scores), untouched.run(scores))


@pytest.mark.parametrize("name", [name for name in MAKERS if "smoothed" in name])
def test_a_held_score_gets_a_fresh_smoothing_draw(name):
    scorer = MAKERS[name](1)
    scorer.run(np.arange(50.0))
    assert len({scorer.update(40.0, learn=False)[0] for _ in range(20)}) == 20


@every_scorer
def test_learning_can_be_held_stream_by_stream(make):
    scores = plain_scores(steps=100)
    one, other = make(), make()
    one.run(scores, learn=[True, False, True])
    other.run(np.where([True, False, True], scores, np.nan))
    assert one.learned.tolist() == other.learned.tolist()
    assert one.learned[1] == 0
    assert one.effective_size[1] == 0


@all_scorers
def test_p_values_are_in_range_for_hard_scores(make):
    scores = hard_scores(seed=3)
    p = make().run(scores)
    np.testing.assert_array_equal(np.isnan(p), np.isnan(scores))
    assert np.nanmin(p) > 0
    assert np.nanmax(p) <= 1


@every_unsmoothed_scorer
def test_constant_scores_are_never_unusual(make):
    assert np.all(make().run(np.full((800, STREAMS), 2.5)) == 1.0)


@every_unsmoothed_scorer
def test_p_falls_as_the_score_rises(make):
    scorer = make()
    scorer.run(plain_scores(steps=150))
    ladder = np.concatenate([[-np.inf], np.linspace(-1, 5, 300), [1e300, np.inf]])
    p = np.array([scorer.update([score] * STREAMS, learn=False) for score in ladder])
    assert np.all(np.diff(p, axis=0) <= 0)


@every_unsmoothed_scorer
@pytest.mark.parametrize("alpha", [1e-9, 0.02, 0.05, 0.2, 0.5, 0.9])
def test_quantile_is_the_inverse_of_p(make, alpha):
    scorer = make()
    scorer.run(plain_scores(steps=150))
    bound = scorer.quantile(alpha)
    finite = np.isfinite(bound)
    if isinstance(scorer, GaussianTail):
        np.testing.assert_allclose(scorer.update(bound, learn=False), alpha, rtol=1e-9)
    else:
        at = scorer.update(np.where(finite, bound, 0.0), learn=False)
        dtype = np.dtype(scorer.dtype).type
        above = scorer.update(np.nextafter(bound.astype(dtype), dtype(np.inf)), learn=False)
        assert np.all(at[finite] >= alpha)
        assert np.all(above[finite] < alpha)
    unresolved = scorer.update([np.inf] * STREAMS, learn=False)
    assert np.all(unresolved[~finite] >= alpha)


@every_unsmoothed_scorer
def test_a_fresh_stream_knows_nothing(make):
    scorer = make()
    assert scorer.effective_size.tolist() == [0.0] * STREAMS
    assert scorer.quantile(0.05).tolist() == [np.inf] * STREAMS
    assert scorer.update([5.0] * STREAMS).tolist() == [1.0] * STREAMS


@every_scorer
def test_one_stream_takes_a_bare_number_and_a_plain_series(make):
    scores = hard_scores(streams=2)[:, 0]
    learn = np.random.default_rng(2).random(STEPS) < 0.8
    one, other = make(1), make(1)
    p = one.run(scores, learn)
    assert p.shape == (STEPS,)
    assert [other.update(score, flag).shape for score, flag in zip(scores, learn, strict=True)] == [(1,)] * STEPS
    same_state(one, other)
    np.testing.assert_array_equal(p, make(1).run(scores[:, np.newaxis], learn[:, np.newaxis])[:, 0])
    one.run(scores, learn=False)
    assert one.learned.tolist() == other.learned.tolist()


@every_scorer
def test_masked_scores_are_missing(make):
    scores = plain_scores(steps=60)
    hidden = np.random.default_rng(0).random(scores.shape) < 0.2
    one, other = make(), make()
    p = one.run(np.ma.masked_array(scores, hidden))
    np.testing.assert_array_equal(p, other.run(np.where(hidden, np.nan, scores)))
    same_state(one, other)


@pytest.mark.slow
@every_scorer
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.update([1.0, 2.0]), r"scores must have shape \(3,\).*got shape \(2,\)"),
        (lambda s: s.update(1.0), r"scores must have shape \(3,\).*got shape \(\)"),
        (lambda s: s.update([[1.0, 2.0, 3.0]]), r"scores must have shape \(3,\).*got shape \(1, 3\)"),
        (lambda s: s.run([1.0, 2.0, 3.0]), r"scores must have shape \(T, 3\).*got shape \(3,\)"),
        (lambda s: s.run(np.zeros((4, 2))), r"scores must have shape \(T, 3\).*got shape \(4, 2\)"),
        (lambda s: s.update(["a", "b", "c"]), "scores must be numbers, got .*'a'"),
        (lambda s: s.update(np.array(["1", "2", "3"], dtype=object)), "scores must be numbers, got .*'1'"),
        (lambda s: s.update([10**400, 0, 0]), "scores must be numbers, got .*too large"),
        (lambda s: s.quantile(10**400), "alpha must be a number > 0 and <= 1, got 1000"),
        (lambda s: s.update([1j, 0, 0]), "scores must be numbers, got .*complex"),
        (lambda s: s.update([[1.0], [2.0, 3.0]]), "scores must be numbers"),
        (lambda s: s.update([1.0] * 3, learn=[True, False]), r"learn must fit scores of shape \(1, 3\), got .*\(2,\)"),
        (lambda s: s.update([1.0] * 3, learn=[1, 0, 1]), "learn must be true or false.*got int64"),
        (lambda s: s.update([1.0] * 3, learn=None), "learn must be true or false.*got object"),
        (lambda s: s.quantile(0.0), "alpha must be a number > 0 and <= 1, got 0.0"),
        (lambda s: s.quantile(1.5), "alpha must be a number > 0 and <= 1, got 1.5"),
        (lambda s: s.quantile("x"), "alpha must be a number > 0 and <= 1, got 'x'"),
    ],
)  # fmt: skip
def test_bad_input_is_named_and_the_scorer_stays_usable(make, call, message):
    scorer, untouched = make(), make()
    for one in (scorer, untouched):
        one.run(plain_scores(steps=70))
    with pytest.raises((TypeError, ValueError), match=message):
        call(scorer)
    same_state(scorer, untouched)
    np.testing.assert_array_equal(scorer.run(plain_scores(9)), untouched.run(plain_scores(9)))


@every_scorer
def test_damaged_states_are_refused(make):
    scorer = make()
    scorer.run(plain_scores(steps=70))
    good = scorer.state()
    kind = type(scorer)

    def refused(match, **changes):
        with pytest.raises(ValueError, match=match):
            kind.from_state({**good, **changes})

    refused(r"state\['format'\] must be 1.*got 2", format=np.array(2))
    refused(r"state\['format'\] must be 1.*got 'one'", format=np.array("one"))
    refused(r"state\['format'\] must be 1.*got True", format=np.array(True))
    with pytest.raises(TypeError, match=r"state must be a mapping.*NoneType"):
        kind.from_state(None)
    with pytest.raises(ValueError, match="threads must be an integer from 1 to 1024, got 0"):
        kind.from_state(good, threads=0)
    refused(r"state\['scorer'\] must be '\w+', got 'Other'", scorer=np.array("Other"))
    refused(r"state\['parameters'\] is damaged", parameters=np.array("{"))
    refused(r"state\['parameters'\] is damaged", parameters=np.array('{"streams": 1000000000}'))
    refused(r"state\['parameters'\] is damaged", parameters=np.array('{"streams": 3, "colour": "red"}'))
    refused(r"state\['parameters'\] is damaged", parameters=np.array('{"window": 30}'))
    refused(r"state\['parameters'\] is damaged", parameters=np.array("[1, 2]"))
    refused(r"state\['parameters'\] is damaged", parameters=np.array("[" * 100_000))
    for name, array in good.items():
        if name in ("format", "scorer", "parameters"):
            continue
        with pytest.raises(ValueError, match=f"missing \\['{name}'\\]"):
            kind.from_state({other: value for other, value in good.items() if other != name})
        if array.size == 0:  # the moments, where the optimizer has none
            continue
        refused(rf"not fit state\['{name}'\]|state\['{name}'\] must be .* of shape", **{name: array[:-1]})
        refused(rf"not fit state\['{name}'\]|state\['{name}'\] must be .* of shape", **{name: array[None]})
        refused(rf"state\['{name}'\] must be .* of shape", **{name: array.astype(complex)})
        if array.dtype.kind == "f":
            refused(rf"state\['{name}'\] is damaged", **{name: np.full_like(array, np.nan)})
        else:
            refused(r"is damaged", **{name: np.full_like(array, -5)})
    same_state(kind.from_state(good), scorer)


@every_scorer
def test_repr_says_how_to_make_it_again(make):
    scorer = make()
    assert eval(repr(scorer), dict(SCORERS))._parameters() == scorer._parameters()


@every_scorer
def test_guarantee_is_stated(make):
    assert len(make().guarantee) > 40
