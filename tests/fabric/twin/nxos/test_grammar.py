from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.twin.cli.grammar import Grammar, Match, RefusedError
from fabric.twin.cli.values import compact, dscps, interfaces, tokenize


def grammar(*syntaxes: str) -> Grammar[str]:
    built: Grammar[str] = Grammar()
    for syntax in syntaxes:
        built.add(syntax, syntax)
    return built


def parse(built: Grammar[str], line: str) -> Match:
    return built.parse(tokenize(line), len(line))[1]


def refusal(built: Grammar[str], line: str) -> tuple[str, int]:
    with pytest.raises(RefusedError) as caught:
        parse(built, line)
    return caught.value.message, caught.value.column


PFC = grammar(
    "[no] priority-flow-control mode {mode: auto | off | on} [send-tlv]", "mtu <mtu:576-9216>"
)


def test_keywords_may_be_shortened_while_they_stay_unique():
    match = parse(PFC, "prio mo on send")
    assert match.string("mode") == "on"
    assert match.text == "priority-flow-control mode on send-tlv"
    assert not match.no
    assert parse(PFC, "no pri m au").no


def test_an_ambiguous_word_is_pointed_at():
    assert refusal(PFC, "prio mode o") == ("% Ambiguous command at '^' marker.", 10)


def test_an_exact_word_wins_over_a_longer_one():
    both = grammar("show interface", "show interface-state")
    assert parse(both, "show interface").text == "show interface"


def test_a_wrong_word_is_pointed_at_and_a_missing_one_behind_the_line():
    assert refusal(PFC, "prio mode never") == ("% Invalid command at '^' marker.", 10)
    assert refusal(PFC, "prio mode") == ("% Incomplete command at '^' marker.", 9)
    assert refusal(PFC, "prio mode on on") == ("% Invalid command at '^' marker.", 13)
    assert refusal(PFC, "mtu 100") == ("Invalid range at '^' marker.", 4)


def test_a_keyword_wins_over_a_parameter():
    named = grammar("class-map [type qos] [match-any] <name:word>")
    assert parse(named, "class-map match-any A").words == ("class-map", "match-any")
    assert parse(named, "class-map B").string("name") == "B"


@pytest.mark.parametrize("syntax", ["a [b", "a b]", "a | b", "(a | [b)"])
def test_malformed_notation_is_a_mistake_of_ours(syntax):
    with pytest.raises(ValueError, match="bracket|unbalanced"):
        grammar(syntax)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ethernet1/1", ("Ethernet1/1",)),
        ("e1/1-3", ("Ethernet1/1", "Ethernet1/2", "Ethernet1/3")),
        ("eth 1/2", ("Ethernet1/2",)),
        ("ethernet1/1, e1/5-6", ("Ethernet1/1", "Ethernet1/5", "Ethernet1/6")),
        ("e1/1 , e1/4", ("Ethernet1/1", "Ethernet1/4")),
        ("lo0", ("loopback0",)),
        ("mgmt0", ("mgmt0",)),
    ],
)
def test_interfaces_are_named_as_people_type_them(text, names):
    taken = interfaces(tokenize(text), 0)
    assert taken.value == names
    assert taken.count == len(text.split())


@pytest.mark.parametrize("text", ["e1/3-1", "e1", "x1/1", "mgmt1/1", "e1/1-1/4", "e1/1,", "lo1/1"])
def test_malformed_interfaces_are_refused(text):
    assert not hasattr(interfaces(tokenize(text), 0), "value")


@given(st.sets(st.integers(0, 63), min_size=1))
def test_dscp_lists_are_printed_as_they_are_read(values):
    assert dscps(tokenize(compact(values)), 0).value == tuple(sorted(values))


def test_dscp_names_are_numbers():
    assert dscps(tokenize("af31,ef,cs6,default"), 0).value == (0, 26, 46, 48)


@given(st.text(alphabet="abnoprimtuef-/|1 ;<>[]{}", max_size=40))
def test_any_line_is_parsed_or_refused_within_the_line(line):
    tokens = tokenize(line)
    column = 0
    try:
        PFC.parse(tokens, len(line))
    except RefusedError as error:
        column = error.column
    assert 0 <= column <= len(line)
