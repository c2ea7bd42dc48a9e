"""The phone and the travel desk: what upstream's classes answer and remember, in both languages."""

from __future__ import annotations

import copy

import pytest

from muarl_worlds.acebench.classes import CLASSES, class_named
from muarl_worlds.acebench.scenario import initial
from muarl_worlds.acebench.texts import EN, ZH

ON = {"wifi": True, "logged_in": True}


def phone(name, language="en", **settings):
    made = CLASSES[language][name]()
    made.load(settings or ON)
    return made


def test_both_languages_have_the_same_classes_and_texts():
    assert (
        list(CLASSES["en"]) == list(CLASSES["zh"]) == ["BaseApi", "MessageApi", "ReminderApi", "FoodPlatform", "Travel"]
    )
    assert set(ZH) - set(EN) == {"reminder_notified", "no_matching_reminders"}
    assert not set(EN) - set(ZH)
    assert all(EN[key].count("{}") == ZH[key].count("{}") for key in EN)


def test_settings_left_out_fall_back_to_defaults():
    device = CLASSES["en"]["BaseApi"]()
    assert (device.wifi, device.logged_in) == (False, True)
    device.load({"logged_in": False})
    assert (device.wifi, device.logged_in) == (False, False)
    food = CLASSES["en"]["FoodPlatform"]()
    food.load({"logged_in_users": ["Eve"]})
    food.load({"wifi": True})
    assert food.logged_in_users == []


def test_a_full_inbox_takes_no_message_until_one_is_deleted():
    messages = phone("MessageApi")
    send = {"sender_name": "Grace", "receiver_name": "Frank", "message": "Hello"}
    assert messages.send_message(**send)["message"].startswith("Inbox capacity is full")
    assert messages.delete_message(3) == {"status": True, "message": "Message ID 3 has been successfully deleted."}
    assert messages.send_message(**send) == {"status": True, "message": "Message successfully sent to Frank."}
    assert list(messages.inbox) == [1, 2, 4, 5, 6, 7]
    assert messages.inbox[7] == {"sender_id": "USR102", "receiver_id": "USR101", "message": "Hello"}


def test_a_sent_message_has_no_date_which_upstream_trips_over():
    messages = phone("MessageApi")
    messages.delete_message(1)
    messages.send_message("Eve", "Frank", "hi")
    with pytest.raises(KeyError, match="time"):
        messages.get_latest_message_id()
    messages._fixed = True
    assert messages.get_latest_message_id()["message_id"] == 7
    assert messages.get_earliest_message_id()["message_id"] == 3
    assert messages.get_all_message_times_with_ids()[7] is None


def test_a_phone_that_is_locked_or_offline_refuses():
    locked = phone("MessageApi", wifi=True, logged_in=False)
    assert locked.delete_message(1)["status"] is False
    assert locked.search_messages("Frank", "MEETING")["status"] is True  # upstream asks for no login here
    offline = phone("MessageApi", wifi=False, logged_in=True)
    assert "Wi-Fi" in offline.send_message("Eve", "Frank", "x")["message"]


def test_reminders():
    reminders = phone("ReminderApi")
    assert reminders.view_reminder_by_title("Team Meeting")["reminder"]["reminder_id"] == 1002
    for n in range(3):
        assert reminders.add_reminder(f"r{n}", "d", "2024-07-15 09:30")["status"]
    assert "full" in reminders.add_reminder("r", "d", "t")["message"]
    assert reminders.delete_reminder(4)["status"]
    assert reminders.delete_reminder(1001) == {"status": False, "message": "Reminder ID does not exist."}
    assert [r["title"] for r in reminders.view_all_reminders()["reminders"]][-2:] == ["r1", "r2"]


def test_only_chinese_reminders_can_be_searched_and_marked():
    assert not hasattr(CLASSES["en"]["ReminderApi"], "search_reminders")
    reminders = phone("ReminderApi", "zh")
    assert reminders.mark_as_notified(1)["status"] and reminders.reminder_list[1]["notified"]
    with pytest.raises(AttributeError, match="strftime"):
        reminders.search_reminders("team")
    reminders._fixed = True
    assert reminders.search_reminders("TEAM")["reminders"][0]["title"] == "Team Meeting"


@pytest.mark.parametrize(
    ("language", "merchant", "product", "refused"),
    [("en", "Heytea", "Four Seasons Spring Milk Tea", False), ("zh", "喜茶", "四季春奶茶", True)],
)
def test_an_order_for_the_last_yuan_is_refused_in_chinese_only(language, merchant, product, refused):
    food = phone("FoodPlatform", language)
    assert food.login_food_platform("Eve", "password123")["status"]
    food.users["Eve"]["balance"] = 44.0
    answer = food.add_food_delivery_order("Eve", merchant, [{"product": product, "quantity": 2}])
    assert answer["status"] is not refused
    assert len(food.orders) == (not refused)


def test_orders_are_looked_up_by_name():
    food = phone("FoodPlatform")
    food.login_food_platform("Grace", "password789")
    food.add_food_delivery_order("Grace", "Domino's", [{"product": "Margherita Pizza"}])
    assert food.users["Grace"]["balance"] == 82.0
    assert food.search_orders("PIZZA")["orders"] == food.view_orders("Grace")["orders"] == food.orders
    assert food.check_balance("Nobody") == 0.0
    chinese = phone("FoodPlatform", "zh")
    chinese.login_food_platform("Grace", "password789")
    chinese.add_food_delivery_order("Grace", "达美乐", [{"product": "玛格丽特披萨"}])
    with pytest.raises(AttributeError, match="'dict' object has no attribute 'lower'"):
        chinese.search_orders("披萨")
    chinese._fixed = True
    assert chinese.search_orders("披萨")["status"]


def test_a_flight_is_booked_changed_and_cancelled():
    desk = CLASSES["en"]["Travel"]()
    booked = desk.reserve_flight("user2", "password456", "CA1234", "Economy Class", "bank", 3)
    assert booked == "Booking successful. Reservation ID: res_5. Total cost: 1250 yuan (including baggage fees)."
    assert desk.users["user2"]["bank_balance"] == 6750.0
    changed = desk.modify_flight("user1", "res_1", new_cabin="Business Class", add_baggage=2)
    assert changed == (
        "Cabin change successful. Price difference paid: 1800. Baggage has been added. Additional fee to be paid: 50."
    )
    assert desk.cancel_reservation("user1", "res_1", "other").startswith("More than 24 hours before departure.")
    assert desk.users["user1"]["cash_balance"] == 5000.0
    assert len(desk.reservations) == 5  # upstream keeps what is cancelled


def test_upstream_books_before_it_has_checked_and_the_mended_desk_does_not():
    desk = CLASSES["en"]["Travel"]()
    with pytest.raises(KeyError, match="membership_level"):
        desk.reserve_flight("user1", "wrong", "CA1234", "Economy Class", "bank", 1)
    with pytest.raises(TypeError, match="'NoneType' object is not subscriptable"):
        desk.reserve_flight("user1", "password123", "XX1", "Economy Class", "bank", 1)
    desk.users["user3"]["cash_balance"] = 10.0
    desk.reservations[0] |= {"user_id": "user3", "payment_method": "cash"}
    assert "Insufficient" in desk.modify_flight("user3", "res_1", new_cabin="Business Class")
    assert desk.reservations[0]["cabin"] == "Business Class"  # though nothing was paid

    mended = CLASSES["en"]["Travel"]()
    mended._fixed = True
    mended.users["user3"]["cash_balance"] = 10.0
    mended.reservations[0] |= {"user_id": "user3", "payment_method": "cash"}
    before = copy.deepcopy(mended.state())
    assert mended.reserve_flight("user1", "wrong", "CA1234", "Economy Class", "bank", 1) == (
        "Authentication failed. Please check your user ID and password."
    )
    assert "no available flight" in mended.reserve_flight("user1", "password123", "XX1", "Economy Class", "bank", 1)
    assert "no cabin" in mended.reserve_flight("user1", "password123", "CA1234", "First", "bank", 1)
    assert "negative" in mended.modify_flight("user3", "res_1", add_baggage=-1)
    assert mended.modify_flight("user3", "res_1", new_flight_no="CA1234", new_cabin="Business Class") == (
        "Insufficient balance to pay the cabin price difference."
    )
    assert mended.state() == before


def test_copies_and_fresh_objects_share_nothing():
    for language, classes in CLASSES.items():
        for name, cls in classes.items():
            one = cls()
            one.load({})
            twin, state = one.copy(), copy.deepcopy(one.state())
            for value in vars(twin).values():
                if isinstance(value, (dict, list)):
                    value.clear()
            assert one.state() == state
            assert all(copy.deepcopy(v) == v for v in initial(language).get(name, {}).values())


def test_a_world_of_ones_own_is_put_in_place():
    messages = phone("MessageApi")
    messages.put(
        {"inbox": {"4": {"sender_id": "USR100", "receiver_id": "USR101", "message": "x", "time": "2024-01-01"}}}
    )
    assert messages.get_latest_message_id()["message_id"] == 4


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Reminderpi", "ReminderApi"), ("BaseAPI", "BaseApi"), ("Baspi", "BaseApi"), ("Finance", None), ("", None)],
)
def test_misspelt_classes_are_recognised(written, meant):
    assert class_named(written) == meant
