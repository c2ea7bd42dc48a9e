"""Reading calls out of messages, and running them as upstream's executors do."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl_worlds.acebench.decode import MAX_TEXT, UndecodableMessage, decode, to_execution
from muarl_worlds.acebench.execute import ERROR, NO_QUESTIONS, AceExecutor, instances_of
from muarl_worlds.acebench.reckon import Reckoner, UnsupportedExpression

PHONE = ("BaseApi", "MessageApi", "FoodPlatform")
ON = {"BaseApi": {"wifi": True, "logged_in": True}}


def executor(category="multi_step", classes=PHONE, language="en", config=ON):
    return AceExecutor(instances_of(language, classes, config), category)


@pytest.mark.parametrize(
    ("message", "executed"),
    [
        ("[f()]", True),
        ("f()", False),
        ("Sure! [f()]", False),
        ("[f()] done", False),
        ("\n[f()]", False),
        (" [f()]", True),
        ("[f(),\n g()]", False),
        ("[f(x=[1],\n y=2)]", True),
        ("[[f()]]", True),
        ("[hello]", True),
        ("['Missing']", True),
        ("[f(x={'a': 1})]", False),
        ("[f(x=[{'a': 1}])]", True),
        ("[f(), 5]", False),
        ("[f('pos')]", True),
        ("", False),
        ("[]", False),
    ],
)
def test_where_a_multi_turn_message_goes(message, executed):
    assert to_execution(message) is executed


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ("[f('pos', x=1)]", ["f(x=1)"]),
        ("[a.f(x=y)]", ["a.f(x='y')"]),
        ("[f(x=+5, y=not True)]", ["f(x=-5, y=-1)"]),
        ("[f(x=2*99.0, y='a'+str(1))]", ["f(x=198.0, y='a1')"]),
        ("[f(x=g(1), y=g(z=1))]", ["f(x='g(1)', y=g(z=1))"]),
        ("[f(x={'g': {'z': 1}})]", ["f(x=g(z=1))"]),
        ("[f(x=...), g(y=a[1:2])]", ["f(x='...')", "g(y='a[1:2]')"]),
        ("[f().g()]", ["g()"]),
        ("[f(x=(1, [2]))]", ["f(x=(1, [2]))"]),
    ],
)
def test_calls_are_written_anew(message, texts):
    assert [call.text for call in decode(message)] == texts


def test_only_keywords_count_and_inherited_methods_run_everywhere():
    run = executor()
    assert run.respond("[login_device(), turn_on_wifi()]")[1]["message"] == "Wi-Fi has been turned on"
    assert all(instance.wifi for instance in run.instances.values())
    assert run.respond("[delete_message(3)]") == [
        "Error during execution: MessageApi.delete_message() missing 1 required positional argument: 'message_id'"
    ]


def test_a_missing_function_gives_the_result_before_it():
    unbound = "Error during execution: cannot access local variable 'func_call_result' "
    unbound += "where it is not associated with a value"
    run = executor()
    good = {"status": True, "message": "Device has been logged in"}
    assert run.respond("[login_device(), no_such()]") == [good, good]
    assert run.respond("[no_such()]") == [unbound]
    assert run.respond("[login_device(x=1), no_such()]") == [
        "Error during execution: BaseApi.login_device() got an unexpected keyword argument 'x'",
        unbound,
    ]


def test_a_failing_call_breaks_off_a_multi_turn_message():
    run = executor("multi_turn")
    assert run.respond("[delete_message(message_id=3), delete_message(), delete_message(message_id=4)]") == list(ERROR)
    assert list(run.instances["MessageApi"].inbox) == [1, 2, 4, 5, 6]
    assert run.final_state() == []  # nothing was executed without an error
    assert run.respond("[hello]") == []
    assert [list(entry) for entry in run.final_state()] == [["BaseApi"], ["MessageApi"], ["FoodPlatform"]]
    assert list(run.final_state()[1]["MessageApi"]["inbox"]) == ["1", "2", "4", "5", "6"]
    with pytest.raises(UndecodableMessage):
        run.respond("hello there")


def test_a_multi_step_message_without_calls_is_answered():
    run = executor()
    assert run.respond("Which message?") == NO_QUESTIONS
    assert run.final_state() == []
    assert run.respond("hello") == []
    assert run.final_state()


def test_results_are_shown_as_they_are_at_the_end_of_the_message():
    run = executor(classes=("Travel",))
    first, _ = run.respond(
        "[authenticate_user(user_id='user1', password='password123'), "
        "reserve_flight(user_id='user1', password='password123', flight_no='CA1234', cabin='Economy Class', "
        "payment_method='cash', baggage_count=1)]"
    )
    assert first["cash_balance"] == 800.0


def test_results_are_json_or_pythons_own_text():
    run = executor()
    assert run.respond("[get_products(merchant_name='Heytea'), check_balance(user_name='Eve')]") == [
        "[{'product': 'Cheese Milk Tea', 'price': 25.0}, {'product': 'Four Seasons Spring Milk Tea', 'price': 22.0}]",
        500.0,
    ]
    travel = executor(classes=("Travel",))
    assert travel.respond(
        "[get_reservation_details(reservation_id='x'), process_refund(user=dict(cash_balance=1), amount=1)]"
    ) == [
        [],
        "Error during execution: 'user_name'",
    ]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("[check_balance(user_name=f(x=1))]", "name 'f' is not defined"),
        ("[check_balance(user_name=1e999)]", "name 'inf' is not defined"),
        ("[MessageApi.delete_message(message_id=1)]", "name 'MessageApi' is not defined"),
        ("[check_balance(**x)]", "cannot assign to None (<string>, line 1)"),
        ("[check_balance(user_name=[])]", "unhashable type: 'list'"),
        (
            "[check_balance(self=1, user_name='Eve')]",
            "FoodPlatform.check_balance() got multiple values for argument 'self'",
        ),
        (
            "[check_balance(usr_name='Eve')]",
            "FoodPlatform.check_balance() got an unexpected keyword argument 'usr_name'",
        ),
    ],
)
def test_errors_have_the_texts_of_python_3_11(message, error):
    (answer,) = executor().respond(message)
    assert answer == f"Error during execution: {error}"


def test_classes_take_over_the_settings_of_base_api():
    made = instances_of(
        "en", PHONE, {"FoodPlatform": {"wifi": True, "logged_in_users": ["Eve"]}, "BaseApi": {"logged_in": False}}
    )
    assert [i.wifi for i in made.values()] == [False] * 3
    assert made["FoodPlatform"].logged_in_users == []
    with pytest.raises(KeyError):
        instances_of("en", ("Finance",), {})


HOSTILE = [
    "[f(x=9**9**9)]",
    "[f(x=1<<10**9)]",
    "[f(x='x'*10**10)]",
    "[f(x='a'+str([[['a'*999]*999]*999]))]",
    "[f(x='%999999999d' % 5)]",
    "[f(x='a'+f'{5:999999999}')]",
    "[f(x='a'+'{0.__class__}'.format(5))]",
    "[f(x='x'+('y'*90000).join(['a']*90000))]",
    "[f(x=1+len(__import__('os').getcwd()))]",
    "[f(x=" + "(" * 50_000 + ")]",
    "[f(x=" + "-" * 50_000 + "1)]",
    "[f(x=" + "1+" * 30_000 + "1)]",
    "[f" + "(x=1)" * 20_000 + "]",
    "[" + "f()," * 30_000 + "]",
    "[" * 100_000,
    "[a" * 60_000 + "]",
    "[f(x='" + "a" * MAX_TEXT + "')]",
    "[f(x='\x00')]",
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_messages_are_refused_in_bounded_time(message):
    with pytest.raises(UndecodableMessage):
        decode(message)
    assert not to_execution(message)


def test_code_in_arguments_is_never_run(tmp_path):
    target = tmp_path / "made"
    for code in (
        f"open('{target}', 'w')",
        f"open(file='{target}', mode='w')",
        f"eval(source=\"open('{target}', 'w')\")",
    ):
        executor().respond(f"[check_balance(user_name={code})]")
        executor().respond(f"[check_balance(user_name=1+{code})]")
    assert not target.exists()


@given(st.text(alphabet="[]()'\"=, ab1{}.*\\\n", max_size=60))
def test_any_text_is_read_or_refused(text):
    run = executor()
    answer = run.respond(text)
    assert answer == NO_QUESTIONS or isinstance(answer, list)
    to_execution(text)


@given(st.recursive(st.none() | st.integers(0) | st.text(), lambda v: st.lists(v, max_size=3)))
def test_plain_values_arrive_as_they_were_written(value):
    (call,) = decode(f"[f(x={value!r})]")
    assert call.arguments["x"] == value


def test_sums_are_bounded():
    with pytest.raises(UnsupportedExpression):
        Reckoner(left=10).value(ast.parse("'a'*11+'b'", mode="eval").body)
