from scenarios.document import Document


def test_a_key_is_a_word_even_where_yaml_takes_it_for_a_truth_value() -> None:
    document = Document("on: [1]\nno: {off: yes}\ntrue: 2\n")
    assert document.data == {"on": [1], "no": {"off": True}, "true": 2}
    assert document.line_of(("no", "off")) == 2
