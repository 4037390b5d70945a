"""What `import kit` offers."""

import kit


def test_every_public_name_loads():
    for name in kit.__all__:
        assert getattr(kit, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(kit, "nothing_of_the_kind")
