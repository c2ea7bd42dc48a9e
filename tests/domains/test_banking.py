"""TAU2's bank: two sides on one database, tools that must be found and unlocked, hashes, and the two semantics."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.tasks import Action, Task
from muarl.rewards.gold import gold_digest, gold_world
from muarl.rewards.outcome import check
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl_worlds.tau.banking.domain import Banking
from muarl_worlds.tau.banking.records import banking_database
from support.small_bank import ANN, TABLES_GIVEN, bank, card, find, hash_in_layout, use


@pytest.fixture
def official():
    return bank().world()


def task(*actions, **options):
    return Task("t", "banking_knowledge", "", actions, **options)


def gold(name, requestor="assistant", **arguments):
    return Action(name, arguments, requestor)


def test_both_sides_share_one_database_with_tau2s_hash(official):
    before = official.full_hash()
    assert before == official.full_hash("user") == hash_in_layout(official.toolkit().db.to_tables())
    use(official, "submit_referral", "user", user_id="u1", account_type="Gold Rewards Card")
    shown = use(official, "get_referrals_by_user", user_id="u1").content
    assert shown.startswith("Found 1 record(s) in 'referrals':\n\n1. Record ID: ")
    assert "   referred_account_type: Gold Rewards Card\n   referral_status: NO_PROGRESS\n   date: 11/14/2025" in shown
    assert official.full_hash() == official.full_hash("user") != before
    assert bank().world().full_hash() == before


def test_a_discoverable_tool_is_in_no_list_and_must_be_unlocked(official):
    domain = official.domain
    assert (
        domain.tool_names()[:3] == ("KB_search", "grep", "transfer_to_human_agents") and len(domain.tool_names()) == 16
    )
    assert len(domain.tool_names("user")) == 6 and len(domain.discoverables) == 44
    assert not set(domain.discoverables) & {*domain.tool_names(), *domain.tool_names("user")}
    call = {"agent_tool_name": "freeze_debit_card_3892", "arguments": '{"card_id": "old"}'}
    assert "has not been unlocked" in use(official, "call_discoverable_agent_tool", **call).content
    shown = use(official, "unlock_discoverable_agent_tool", agent_tool_name="freeze_debit_card_3892").content
    assert "Parameters:\n  - card_id: string (required) - The debit card ID to freeze\n" in shown
    assert use(official, "call_discoverable_agent_tool", **call).content.startswith("Debit Card Frozen Successfully\n")
    assert "tool_name: freeze_debit_card_3892" in use(official, "list_discoverable_agent_tools").content
    assert "Unknown agent tool 'x'" in use(official, "unlock_discoverable_agent_tool", agent_tool_name="x").content
    assert "not been unlocked" in use(domain.world(), "call_discoverable_agent_tool", **call).content


def test_only_fixed_semantics_refuse_a_discoverable_tools_own_name(official):
    straight = use(official, "freeze_debit_card_3892", card_id="old")
    assert straight.content.startswith("Debit Card Frozen") and not official.toolkit().db["agent_discoverable_tools"]
    fixed = bank("fixed").world()
    assert use(fixed, "freeze_debit_card_3892", card_id="old").error
    assert not find(fixed, "freeze_debit_card_3892", card_id="old").error


def test_a_user_needs_to_be_given_a_tool(official):
    name, arguments = "deposit_check_3847", '{"account_id": "chk", "check_amount": 50}'
    call = {"discoverable_tool_name": name, "arguments": arguments}
    assert "has not been given to you" in use(official, "call_discoverable_user_tool", "user", **call).content
    given_ = use(official, "give_discoverable_user_tool", **call).content
    assert (
        given_.startswith(f"Tool given to user: {name}\nDescription: Deposit a check into")
        and '"check_amount": 50' in given_
    )
    done = use(official, "call_discoverable_user_tool", "user", **call).content
    assert done.endswith("  - Check Amount: $50.00\n  - Previous Balance: $100.00\n  - New Balance: $150.00")
    wrong = {"discoverable_tool_name": name, "arguments": '{"account_id": "chk"}'}
    assert use(official, "call_discoverable_user_tool", "user", **wrong).content == (
        "Error: Missing required parameter: check_amount"
    )
    unknown = use(official, "give_discoverable_user_tool", discoverable_tool_name="__init__")
    assert unknown.content == "Error: Unknown discoverable tool '__init__'."


@pytest.mark.parametrize("semantics", ["official", "fixed"])
def test_numbers_leave_the_same_state_however_they_are_written(semantics):
    ends = set()
    for amount in ("33", "33.0", "3.3e1"):
        world = bank(semantics).world()
        text = f'{{"account_id": "sav", "amount": {amount}, "credit_type": "goodwill_credit"}}'
        assert "New Balance: $2033.00" in find(world, "apply_savings_account_credit_6831", text).content
        ends.add((world.full_hash(), world.digest()))
    assert len(ends) == 1


def test_reads_leave_a_record_only_if_the_gold_actions_call_them():
    name = "get_all_user_accounts_by_user_id_3847"
    asked = gold("call_discoverable_agent_tool", agent_tool_name=name, arguments='{"user_id": "u1"}')
    for wanted, recorded in ((task(), False), (task(gold("unlock_discoverable_agent_tool"), asked), True)):
        world = bank().world(wanted)
        before = world.full_hash()
        assert "Account" in find(world, name, user_id="u1").content
        assert (world.full_hash() != before) is recorded


def test_a_recorded_conversation_comes_to_the_gold_state():
    name, arguments = "close_debit_card_4721", '{"card_id": "old", "reason": "lost"}'
    wanted = task(
        gold("unlock_discoverable_agent_tool", agent_tool_name=name),
        gold("call_discoverable_agent_tool", agent_tool_name=name, arguments=arguments),
        gold("request_human_agent_transfer", "user"),
        reward_basis=("DB", "ACTION"),
    )
    domain = bank()
    live, messages = domain.world(wanted), []
    for number, action in enumerate(wanted.actions):
        call = ToolCall(str(number), action.name, action.arguments, action.requestor)
        messages.append(Message(action.requestor, None, (call,)))
        answer = live.call(action.requestor, call)
        messages.append(Message("tool", answer.content, tool_call_id=call.id, requestor=action.requestor))
    again = domain.world(wanted)
    replay(again, messages)
    found = check(wanted, again, messages)
    assert again.digest() == gold_digest(domain, wanted) == gold_world(domain, wanted).digest()
    assert found.part("DB") == found.part("ACTION") == 1.0
    assert check(wanted, domain.world(wanted), ()).part("DB") == 0.0


ODD_ID = 'x", "name__startswith": "Ann", "user_id__ne": "y'


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_user_information_by_id", {"user_id": "u9"}, "No records found in 'users'."),
        ("get_user_information_by_id", {}, "missing 1 required positional argument: 'user_id'"),
        ("get_user_information_by_id", {"user_id": 'a"b'}, "Error: Invalid JSON: Expecting ',' delimiter"),
        ("get_user_information_by_id", {"user_id": 'x", "db": "'}, "got multiple values for keyword argument 'db'"),
        ("get_user_information_by_name", {"customer_name": 'Ann Lee", "limit": 1, "x__ne": "'}, "Record ID: u1"),
        ("get_user_information_by_id", {"user_id": ODD_ID}, "No records found"),
        ("change_user_email", {"user_id": [], "new_email": "x"}, "Error: unhashable type: 'list'"),
        ("transfer_to_human_agents", {"summary": "s", "reason": "bored"}, "Invalid transfer reason 'bored'"),
        ("give_discoverable_user_tool", {"discoverable_tool_name": 5}, "attribute name must be string, not 'int'"),
        ("think", {}, "Error: Tool 'think' not found."),
    ],
)
def test_official_answers_to_odd_calls_are_pythons_and_tau2s(official, name, arguments, text):
    before = official.full_hash()
    assert text in use(official, name, **arguments).content
    assert official.full_hash() == before


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("[]", "Error: Invalid arguments: tau2.domains.banking_knowledge.tools.KnowledgeTools.freeze_debit_card_3892() "
         "argument after ** must be a mapping, not list"),
        ("{}", "Error: Invalid arguments: KnowledgeTools.freeze_debit_card_3892() missing 1 required positional "
         "argument: 'card_id'"),
        ('{"card": "old"}', "Error: Invalid arguments: KnowledgeTools.freeze_debit_card_3892() got an unexpected "
         "keyword argument 'card'"),
        ('{"card_id": "old", }', "Error: Invalid JSON in arguments: Expecting property name enclosed in double quotes: "
         "line 1 column 20 (char 19)"),
        ("[1 ,  ]", "Error: Invalid JSON in arguments: Expecting value: line 1 column 7 (char 6)"),
        ('{"card_id": ["old"]}', "Error: Invalid arguments: unhashable type: 'list'"),
    ],
)  # fmt: skip
def test_arguments_of_discoverable_tools_meet_the_words_of_python_3_12(official, given_, text):
    assert find(official, "freeze_debit_card_3892", given_).content == text


def test_a_quote_cannot_change_a_search_in_fixed_semantics():
    trick = 'x", "user_id__ne": "y'
    assert (
        "Ann Lee" in use(bank().world(), "get_user_information_by_name", customer_name='Q", "name": "Ann Lee').content
    )
    for text in (trick, 'Q", "name": "Ann Lee'):
        shown = use(bank("fixed").world(), "get_user_information_by_name", customer_name=text).content
        assert shown == "No records found in 'users'."


def test_fixed_semantics_undo_what_broke_off_and_mark_it_as_an_error():
    name = "file_credit_card_transaction_dispute_4829"
    arguments = {
        "transaction_id": "t", "card_action": "keep_active", "card_last_4_digits": "1", "full_name": "a",
        "user_id": "u1", "phone": "1", "email": "e", "address": "a", "contacted_merchant": True, "purchase_date": "d",
        "issue_noticed_date": "d", "dispute_reason": "duplicate_charge", "resolution_requested": "partial_refund",
        "eligible_for_provisional_credit": False, "partial_refund_amount": "ten",
    }  # fmt: skip
    for semantics, kept in (("official", 1), ("fixed", 0)):
        world = bank(semantics).world()
        assert find(world, name, **arguments).error
        assert len(world.toolkit().db["transaction_disputes"]) == kept
    world = bank("fixed").world()
    assert (
        find(world, "freeze_debit_card_3892", card_id=["old"]).content
        == "Error: Invalid arguments: unhashable type: 'list'"
    )


def test_a_tasks_own_data_lie_over_the_base_at_every_depth():
    over = {
        "users": {"data": {"u1": {"email": "new@x.org"}, "u3": {"user_id": "u3"}}},
        "debit_cards": {"data": {"extra": card("extra")}, "notes": "changed"},
    }
    world = bank().world(task(initial_data={"assistant": over}))
    tables = world.toolkit().db.to_tables()
    assert tables["users"]["u1"] == {**ANN, "email": "new@x.org"} and list(tables["users"]) == ["u1", "u2", "u3"]
    assert tables["notes"]["debit_cards"] == "changed" and "extra" in tables["debit_cards"]
    assert world.full_hash() == world.full_hash("user") == hash_in_layout(tables)
    assert bank().world(task(initial_data={"user": over})).full_hash() == world.full_hash()
    for wrong, text in (
        ({"loans": {}}, "there is no table 'loans'"),
        ({"users": None}, "users must be an object, not NoneType"),
        ({"users": {"data": {"u1": 5}}}, "users.data must map keys to records"),
    ):
        with pytest.raises(DataError, match=f"banking_knowledge task 't': banking database: {text}"):
            bank().world(task(initial_data={"assistant": wrong}))
    begun = {"env_type": "user", "func_name": "request_human_agent_transfer", "arguments": {}}
    assert len(bank().world(task(initial_actions=(begun,))).toolkit().db["human_transfer_requests"]) == 1
    with pytest.raises(DataError, match="initial action 'world' is no function here"):
        bank().world(task(initial_actions=({**begun, "func_name": "world"},)))


def test_malformed_databases_and_options_are_refused():
    for given_, text in (
        ([], "must be an object of tables"),
        ({"loans": {}}, "there is no table 'loans'"),
        ({"users": {"notes": 5}}, "users.notes must be a string, not int"),
    ):
        with pytest.raises(DataError, match=text):
            banking_database(given_)
    with pytest.raises(ConfigError, match="top_k: must be a whole number above 0"):
        bank(top_k=0)
    with pytest.raises(ConfigError, match="tools: banking_knowledge has no tool 'fly'"):
        bank(tools=["fly"])
    assert bank(tools=["get_current_time"]).tool_names() == ("get_current_time",)
    assert isinstance(bank(database=banking_database(TABLES_GIVEN)), Banking)


CALLS = st.lists(
    st.sampled_from(
        [
            ("freeze_debit_card_3892", {"card_id": "old"}),
            ("unfreeze_debit_card_3893", {"card_id": "old"}),
            ("activate_debit_card_8292", {"card_id": "lost", "last_4_digits": "4821", "expiration_date": "05/28",
                                          "cvv": "123", "pin": "4829"}),
            ("transfer_funds_between_bank_accounts_7291", {"source_account_id": "sav", "destination_account_id": "chk",
                                                           "amount": 12.5}),
            ("pay_credit_card_from_checking_9182", {"user_id": "u1", "checking_account_id": "chk",
                                                    "credit_card_account_id": "cc", "amount": 10}),
            ("order_replacement_credit_card_7291", {"credit_card_account_id": "cc", "user_id": "u1",
                                                    "shipping_address": "x", "reason": "lost"}),
            ("close_bank_account_7392", {"account_id": "hers"}),
            ("open_bank_account_4821", {"user_id": "u1", "account_type": "savings", "account_class": "Gold"}),
            ("get_payment_history_6183", {"credit_card_account_id": "cc", "months": 2}),
            ("nope", {}),
        ]
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=40)
@given(CALLS)
def test_the_hash_is_that_of_the_whole_layout_after_any_calls(calls):
    worlds = [bank(semantics).world() for semantics in ("official", "fixed")]
    for name, arguments in calls:
        answers = {find(world, name, **arguments).content for world in worlds}
        assert len(answers) == 1
    tables = [world.toolkit().db.to_tables() for world in worlds]
    assert tables[0] == tables[1] and worlds[0].digest() == worlds[1].digest()
    assert [world.full_hash() for world in worlds] == [hash_in_layout(tables[0])] * 2
    assert json.loads(json.dumps(tables[0])) == tables[0]
