"""The pages of `docs/play/`: what somebody changes, and then sees."""

import math
import re

import numpy as np
import play_pages
import pytest
from browsing import choose
from play_equations import all_paths, told_network

from keras_attention.data.embedded import stories


@pytest.mark.slow
def test_a_head_is_that_of_the_model_and_moves(opened):
    page = opened("temperature")
    data = play_pages.kept_data("temperature")
    for number, head in enumerate(data["heads"]):
        choose(page, head=number)
        rows = [
            [float(cell) if cell != "–" else 0 for cell in texts[:-1]]
            for texts in page.evaluate(
                """[...document.querySelectorAll("#weights tbody tr")].map(
                  row => [...row.querySelectorAll("td")].map(
                    cell => cell.textContent))"""
            )
        ]
        expected = np.array(head["weights"])[: len(rows)]
        np.testing.assert_allclose(rows, expected, atol=0.0051)
    choose(page, head=0)
    before = page.locator("#weights").text_content()
    page.locator("#temperature").press("ArrowLeft")
    after = page.locator("#weights").text_content()
    assert before != after
    choose(page, temperature=1)  # The second: 0.1.
    assert page.locator("#temperature-told").text_content() == "0.1"
    entropies = page.locator("td.entropy").all_text_contents()
    assert sum(map(float, entropies)) < 1
    choose(page, causal=False, padding=False)
    assert "may look at 10 tokens" in page.locator("#says").text_content()
    page.locator("#reset").click()
    assert page.locator("#weights").text_content() == before
    row = page.locator("#weights button[aria-pressed=true]")
    row.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "“spielen” may look" in page.locator("#says").text_content()


@pytest.mark.slow
def test_places_and_lengths_change_what_a_reader_knows(opened):
    page = opened("positions")

    def share():
        text = page.locator("#says").text_content()
        right, number = re.search(r": (\d+) of (\d+) words", text).groups()
        return int(right) / int(number)

    shares = {}
    for number, kind in enumerate(["sinusoids", "RoPE", "ALiBi", "Shaw"]):
        choose(page, kind=number, length=24, start=0)
        picture = page.locator("#looks path").last.get_attribute("d")
        shares[kind] = [share()]
        choose(page, start=96)
        shares[kind].append(share())
        is_moved = picture != page.locator("#looks path").last.get_attribute(
            "d"
        )
        assert is_moved == (kind == "sinusoids")
        choose(page, start=0, length=192)
        shares[kind].append(share())
        assert page.locator("#text li").count() == 192
    assert shares["sinusoids"][0] == 1 and max(shares["sinusoids"][1:]) < 0.4
    assert shares["RoPE"][:2] == [1, 1] and shares["Shaw"] == [1, 1, 1]
    words = page.locator("#text").text_content()
    page.locator("#other").focus()
    page.keyboard.press("Enter")
    assert page.locator("#text").text_content() != words
    page.locator("#distance").press("ArrowRight")
    assert "At the distance 25" in page.locator("#similar").text_content()


@pytest.mark.slow
def test_a_sentence_is_struck_out(opened):
    page = opened("hops")
    data = play_pages.kept_data("hops")
    says = page.locator("#says")
    story = data["stories"][0]
    assert f"“{story['answer']}”" in says.text_content()
    before = page.locator("#weights").text_content()
    buttons = page.locator("#weights button")
    buttons.nth(0).focus()
    for _ in range(min(story["facts"])):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    kept = [*story["sentences"]]
    del kept[min(story["facts"])]
    logits = told_network(data, kept, story["question"])
    assert f"“{stories.PLACES[logits.argmax()]}”" in says.text_content()
    assert page.locator("#weights s").count() == 1
    page.keyboard.press("Enter")  # The focus has stayed.
    assert page.locator("#weights").text_content() == before
    choose(page, hops=1)
    assert "after 1 hop." in says.text_content()
    for number in range(len(story["sentences"])):
        buttons.nth(number).click()
    assert page.locator("#weights s").count() == len(story["sentences"]) - 1


@pytest.mark.slow
def test_the_answers_to_the_questions_about_hops_are_so(opened):
    page = opened("hops")
    told = page.evaluate(
        """data.stories.map(({ sentences, question, answer, facts }) => {
          const tell = (kept, hops) => {
            const p = softmax(answered(kept, question).logits[hops]);
            return [data.places[p.indexOf(Math.max(...p))] === answer,
              Math.max(...p)];
          };
          return [tell(sentences, 1), tell(sentences, 2),
            ...facts.map((fact) =>
              tell(sentences.filter((_, i) => i !== fact), 3))];
        })"""
    )
    guesses = []
    for number, (one, two, struck, *moves) in enumerate(told, 1):
        assert one[0] == (number > 4) and two[0]
        if number in (1, 3, 4):
            assert not struck[0] and struck[1] > 0.99
        if number < 3:  # Nobody has moved this person before.
            guesses += moves
    assert [is_right for is_right, _ in guesses] == [False, False]
    assert [round(share, 2) for _, share in guesses] == [0.93, 0.29]


@pytest.mark.slow
def test_paths_pass_the_chosen_nodes(opened):
    page = opened("lattice")
    word = play_pages.kept_data("lattice")["words"][0]
    token, blank = (
        np.array(word["lattices"][2][name]) for name in ("token", "blank")
    )
    says, nodes = page.locator("#says"), page.locator("#nodes button")
    whole, number = all_paths(token, blank)
    assert f" {number} paths lead through" in says.text_content()
    height = blank.shape[1]
    nodes.first.focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowDown", "Enter"]:
        page.keyboard.press(key)
    total, passing = all_paths(token, blank, [(2, 1)])
    text = says.text_content()
    assert f" {passing} of {number} paths pass" in text
    (share,) = re.findall(r"They have (\S+)\s%", text)
    assert float(share) == pytest.approx(100 * total / whole, abs=0.006)
    # In each node, the share of the paths that pass it, too.
    both, _ = all_paths(token, blank, [(2, 1), (3, 2)])
    text = nodes.nth(3 * height + 2).text_content()
    assert float(text) == pytest.approx(both / total, abs=0.0051)
    nodes.nth(1 * height + 2).click()  # Lower and further to the left.
    assert " 0 of " in says.text_content()
    page.locator("#reset").click()
    assert f" {number} paths lead through" in says.text_content()


@pytest.mark.slow
def test_a_wrong_reading_rises_and_falls(opened):
    page = opened("lattice")
    (place,) = (
        place
        for place, word in enumerate(play_pages.kept_data("lattice")["words"])
        if not word["isRight"]
    )
    told = []
    for time in (3, 4):
        choose(page, word=place, time=time)
        told.append(page.locator("#says").text_content())
    assert "maxi as m a s i (which is wrong): its" in told[0]
    assert "probability is 6.46\u00a0%" in told[0]
    assert "· 10⁻⁷\u00a0%" in told[1]


@pytest.mark.slow
def test_a_token_tells_where_its_weight_goes(opened):
    page = opened("temperature")
    data = play_pages.kept_data("temperature")
    choose(page, head=0, causal=False, padding=False)
    page.locator("#weights button").nth(2).click()
    weights = page.evaluate(
        """weightsOf(data.heads[0], { temperature: 1, scale: true,
          causal: false, padding: false })[2]"""
    )
    pads = sum(weights[-data["numPads"] :])
    assert 0.4 < pads < 0.6
    told = page.locator("#says").text_content()
    assert f"{100 * max(weights):.0f}\u00a0%, is on a PAD. All" in told
    assert f"All PAD together have {100 * pads:.0f}\u00a0%." in told


@pytest.mark.slow
def test_forward_sums_grow_move_by_move(opened):
    page = opened("lattice")
    word = play_pages.kept_data("lattice")["words"][0]
    blank = np.array(word["lattices"][2]["blank"])
    token = np.array(word["lattices"][2]["token"])
    choose(page, shown="forward", step=1)
    nodes = page.locator("#nodes button")
    height = blank.shape[1]
    seen = [text for text in nodes.all_text_contents() if text]
    first = [1, math.exp(token[0, 0]), math.exp(blank[0, 0])]
    np.testing.assert_allclose([*map(float, seen)], first, atol=0.0051)
    told = page.locator("#node").text_content()
    assert f"up to {100 * sum(first[1:]):.2f}" in told
    assert "after 1 move have" in told
    page.locator("#step").press("ArrowRight")
    assert nodes.nth(height + 1).text_content()
    assert not nodes.nth(height + 2).text_content()
