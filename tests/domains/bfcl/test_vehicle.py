"""VehicleControlAPI: what its tools answer and change; expected values are upstream's."""

from __future__ import annotations

import pytest

from muarl_worlds.bfcl.vehicle import REVISIONS

LONG = {
    "CAR_STATUS_METADATA_EXTENSION": "Model: A6",
    "LONG_WEATHER_EXTENSION": {"-1_day": {"windSpeed": 15.0}},
    "PARKING_BRAKE_INSTRUCTION": "Pull it.",
    "INTERMEDIARY_CITIES": ["Madison"],
}
DOORS = ["driver", "passenger", "rear_left", "rear_right"]


def loaded(config=None, long_context=None, revision="v4"):
    car = REVISIONS[revision]()
    car.load(config or {}, long_context)
    return car


@pytest.fixture
def car():
    return loaded()


def test_state_has_upstreams_public_attributes(car):
    assert list(car.state()) == [
        "fuelLevel", "batteryVoltage", "engine_state", "remainingUnlockedDoors", "doorStatus", "acTemperature",
        "fanSpeed", "acMode", "humidityLevel", "headLightStatus", "parkingBrakeStatus", "brakePedalStatus",
        "distanceToNextVehicle", "cruiseStatus", "destination", "frontLeftTirePressure", "frontRightTirePressure",
        "rearLeftTirePressure", "rearRightTirePressure", "long_context",
    ]  # fmt: skip
    assert REVISIONS["v3"] is REVISIONS["v4"]


def test_a_scenario_counts_unlocked_doors_itself():
    car = loaded({"remainingUnlockedDoors": 9, "engineState": "running", "doorStatus": {"driver": "locked"}})
    assert (car.remainingUnlockedDoors, car.engine_state) == (3, "running")


def test_the_engine_starts_with_doors_locked_and_the_brake_down(car):
    doors = "driver, passenger, rear_left, rear_right"
    assert car.startEngine("START") == {
        "error": f"All doors must be locked before starting the engine. Here are the unlocked doors: {doors}"
    }
    assert car.lockDoors(False, DOORS) == {"lockStatus": "locked", "remainingUnlockedDoors": 0}
    assert car.startEngine("START") == {"error": "Brake pedal needs to be pressed when starting the engine."}
    assert car.pressBrakePedal(0.5) == {"brakePedalStatus": "pressed", "brakePedalForce": 500.0}
    assert car.startEngine("START") == {"error": "Must press the brake fully before starting the engine."}
    assert car.pressBrakePedal(True) == {"brakePedalStatus": "pressed", "brakePedalForce": 1000.0}
    assert car.startEngine("START") == {"engineState": "running", "fuelLevel": 0.0, "batteryVoltage": 12.6}
    assert car.startEngine("STOP") == {"error": "Invalid ignition mode."}
    assert car.engine_state == "stopped"


def test_doors_are_locked_up_to_the_first_that_is_none(car):
    with pytest.raises(KeyError, match="^'trunk'$"):
        car.lockDoors(False, ["driver", "trunk", "passenger"])
    assert (car.doorStatus["driver"], car.doorStatus["passenger"]) == ("locked", "unlocked")
    assert car.remainingUnlockedDoors == 3


def test_the_tank_has_bounds(car):
    assert car.fillFuelTank(20.5) == {"fuelLevel": 20.5}
    assert car.fillFuelTank(30) == {"error": "Cannot fill gas above the tank capacity."}
    assert car.fillFuelTank(-1) == {"error": "Fuel amount cannot be negative."}
    assert car.estimate_drive_feasibility_by_mileage(410) == {"canDrive": True}
    assert car.estimate_drive_feasibility_by_mileage(410.5) == {"canDrive": False}


def test_climate_is_kept_in_celsius_and_answered_as_given(car):
    assert car.adjustClimateControl(68, "fahrenheit", 100, "cool") == {
        "currentACTemperature": 68, "climateMode": "cool", "humidityLevel": 50.0
    }  # fmt: skip
    assert (car.acTemperature, car.fanSpeed) == (20.0, 100)
    assert car.adjustClimateControl(20, fanSpeed=101) == {"error": "Fan speed must be between 0 and 100."}
    with pytest.raises(TypeError):
        car.adjustClimateControl("68", "fahrenheit")
    assert car.acTemperature == "68"  # set before it fails, as upstream


def test_cruise_control_notes_the_distance_even_for_a_wrong_speed(car):
    assert car.setCruiseControl(60, True, 100) == {"error": "Start the engine before activating the cruise control."}
    car.engine_state = "running"
    assert car.setCruiseControl(63, True, "100") == {"error": "Invalid speed"}
    assert (car.distanceToNextVehicle, car.cruiseStatus) == (100.0, "inactive")
    assert car.setCruiseControl(65, True, 50) == {
        "cruiseStatus": "active", "currentSpeed": 65.0, "distanceToNextVehicle": 50.0
    }  # fmt: skip
    assert car.setCruiseControl(63, False, 50)["cruiseStatus"] == "inactive"


def test_brakes_and_lights(car):
    engaged = {"parkingBrakeStatus": "engaged", "_parkingBrakeForce": 500.0, "_slopeAngle": 10.0}
    assert car.activateParkingBrake("engage") == engaged
    assert car.displayCarStatus("parkingBrake") == {
        "parkingBrakeStatus": "engaged", "parkingBrakeForce": 500.0, "slopeAngle": 10.0
    }  # fmt: skip
    assert car.activateParkingBrake(["engage"]) == {"error": "Invalid mode"}
    assert car.pressBrakePedal(1.5) == {"error": "Pedal position must be between 0 and 1."}
    assert car.pressBrakePedal(0) == car.releaseBrakePedal() == {"brakePedalStatus": "released", "brakePedalForce": 0.0}
    assert [car.setHeadlights(m) for m in ("on", "auto", "dim")] == [
        {"headlightStatus": "on"}, {"headlightStatus": "off"}, {"error": "Invalid headlight mode."}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "keys"),
    [
        ("fuel", ["fuelLevel"]),
        ("battery", ["batteryVoltage"]),
        ("doors", ["doorStatus"]),
        ("climate", ["currentACTemperature", "fanSpeed", "climateMode", "humidityLevel"]),
        ("headlights", ["headlightStatus"]),
        ("brakePedal", ["brakePedalStatus", "brakePedalForce"]),
        ("engine", ["engineState"]),
        ({"engine"}, ["error"]),
    ],
)
def test_the_status_shows_one_part(car, option, keys):
    assert list(car.displayCarStatus(option)) == keys
    assert list(loaded({}, LONG).displayCarStatus(option)) == ["metadata", *keys]


def test_speed_and_weather_are_drawn(car):
    assert car.get_current_speed() == {"currentSpeed": 111.92365689097284}
    assert car.get_outside_temperature_from_google() == {"outsideTemperature": 31.29968928699752}
    assert car.get_outside_temperature_from_weather_com() == {"error": 404}


def test_facts_about_places(car):
    assert car.get_zipcode_based_on_city("Rivermist") == {"zipcode": "83214"}
    assert car.get_zipcode_based_on_city(["Rivermist"]) == {"zipcode": "00000"}
    assert car.estimate_distance("74532", "83214") == car.estimate_distance("83214", "74532") == {"distance": 750.0}
    assert car.estimate_distance("83214", "83214") == {"error": "distance not found in database."}
    assert car.estimate_distance(83214, ["74532"]) == {"error": "distance not found in database."}
    assert car.liter_to_gallon(10) == {"gallon": 2.6417200000000003}
    assert car.gallon_to_liter(10) == {"liter": 37.8541}
    assert car.display_log(["a"]) == {"log": ["a"]}


def test_navigation_takes_any_destination_but_can_only_speak_of_text(car):
    assert car.set_navigation("Main St") == {"status": "Navigating to Main St"}
    with pytest.raises(TypeError, match=r'can only concatenate str \(not "int"\) to str'):
        car.set_navigation(5)
    assert car.destination == 5


def test_long_context_lengthens_what_is_shown():
    car = loaded({}, LONG)
    assert car.check_tire_pressure()["car_info"] == "Model: A6"
    assert loaded().check_tire_pressure()["car_info"] == {}
    assert next(iter(car.activateParkingBrake("release"))) == "parkingBrakeInstruction"
    assert car.estimate_distance("1", "2") == {
        "error": "distance not found in database.", "intermediaryCities": ["Madison"]
    }  # fmt: skip
    weather = car.get_outside_temperature_from_google()
    assert list(weather) == ["-1_day", "outsideTemperature"]
    assert LONG["LONG_WEATHER_EXTENSION"] == {"-1_day": {"windSpeed": 15.0}}


def test_a_copy_goes_its_own_way():
    car = loaded({}, LONG)
    car.get_outside_temperature_from_google()
    twin, before = car.copy(), repr(vars(car))
    twin.lockDoors(False, DOORS)
    twin.set_navigation("x")
    temperature = twin.get_outside_temperature_from_google()["outsideTemperature"]
    assert repr(vars(car)) == before
    assert car.get_outside_temperature_from_google()["outsideTemperature"] == temperature


def test_errors_about_arguments_name_upstreams_class(car):
    with pytest.raises(TypeError, match=r"^VehicleControlAPI.startEngine\(\) missing 1 required positional argument"):
        car.startEngine()
