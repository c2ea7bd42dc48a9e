"""What users want done with a car, and worked out (VehicleControlAPI, MathAPI)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.parts import facts
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots, Step, number
from muarl.domains.bfcl.recipes_files import FILES, file_in, reads, text_of
from muarl.domains.bfcl.recipes_people import MESSAGES
from muarl.domains.bfcl.scenes import MATH
from muarl.domains.drawing import Infeasible

CAR = "VehicleControlAPI"
DOORS = ["driver", "passenger", "rear_left", "rear_right"]
_ZIPS: dict[str, str] = facts("vehicle")["zipcodes"]
_KNOWN = {frozenset((a, b)) for a, b, _ in facts("vehicle")["distances"]}
_WHEELS = {
    "front left": "frontLeftTirePressure", "front right": "frontRightTirePressure",
    "rear left": "rearLeftTirePressure", "rear right": "rearRightTirePressure",
}  # fmt: skip


def _draw_fill(draw: Draw) -> Slots:
    room = 50 - draw.state[CAR]["fuelLevel"]
    return {"gallons": str(draw.pick([n / 2 for n in range(4, 70) if n / 2 < room]))}


def _fill(slots: Slots, memory: Memory) -> Plan:
    yield "fillFuelTank", {"fuelAmount": float(slots["gallons"])}
    return NOTHING


def _draw_liters(draw: Draw) -> Slots:
    room = 50 - draw.state[CAR]["fuelLevel"]
    amounts = {n: n * 0.264172 for n in range(20, 130, 5)}
    return {"liters": str(draw.pick([n for n, g in amounts.items() if round(g) < room and 0.1 < g % 1 < 0.9]))}


def _fill_liters(slots: Slots, memory: Memory) -> Plan:
    changed = yield "liter_to_gallon", {"liter": float(slots["liters"])}
    yield "fillFuelTank", {"fuelAmount": float(round(changed["gallon"]))}
    return NOTHING


def _draw_stopped(draw: Draw) -> Slots:
    if draw.state[CAR]["engine_state"] == "running":
        raise Infeasible
    return {}


def _start(slots: Slots, memory: Memory) -> Plan:
    yield "lockDoors", {"unlock": False, "door": list(DOORS)}
    yield "pressBrakePedal", {"pedalPosition": 1.0}
    yield "startEngine", {"ignitionMode": "START"}
    return NOTHING


def _draw_cruise(draw: Draw) -> Slots:
    if draw.state[CAR]["engine_state"] != "running":
        raise Infeasible
    return {"speed": str(draw.rng.randrange(8, 22) * 5), "meters": str(draw.rng.randrange(4, 30) * 5)}


def _cruise(slots: Slots, memory: Memory) -> Plan:
    speed, distance = float(slots["speed"]), float(slots["meters"])
    yield "setCruiseControl", {"speed": speed, "activate": True, "distanceToNextVehicle": distance}
    return NOTHING


def _draw_lights(draw: Draw) -> Slots:
    return {"switch": "off" if draw.state[CAR]["headLightStatus"] == "on" else "on"}


def _lights(slots: Slots, memory: Memory) -> Plan:
    yield "setHeadlights", {"mode": slots["switch"]}
    return NOTHING


def _draw_brake(draw: Draw) -> Slots:
    return {"brake": "release" if draw.state[CAR]["parkingBrakeStatus"] == "engaged" else "engage"}


def _brake(slots: Slots, memory: Memory) -> Plan:
    yield "activateParkingBrake", {"mode": slots["brake"]}
    return NOTHING


def _draw_street(draw: Draw) -> Slots:
    place = f"{draw.pick(pools.STREETS)}, {draw.pick(sorted(_ZIPS))}"
    if place == draw.state[CAR]["destination"]:
        raise Infeasible
    return {"place": place}


def _navigate(slots: Slots, memory: Memory) -> Plan:
    yield "set_navigation", {"destination": slots["place"]}
    return NOTHING


def _draw_climate(draw: Draw) -> Slots:
    return {
        "degrees": str(draw.rng.randrange(33, 56) / 2), "fan": str(draw.rng.randrange(2, 19) * 5),
        "air": draw.pick(("cool", "heat", "defrost")),
    }  # fmt: skip


def _climate(slots: Slots, memory: Memory) -> Plan:
    told = {"temperature": float(slots["degrees"]), "fanSpeed": int(slots["fan"]), "mode": slots["air"]}
    yield "adjustClimateControl", told
    return NOTHING


def _draw_wheel(draw: Draw) -> Slots:
    return {"wheel": draw.pick(sorted(_WHEELS))}


def _tire(slots: Slots, memory: Memory) -> Plan:
    seen = yield "check_tire_pressure", {}
    pressure = number(seen[_WHEELS[slots["wheel"]]])
    return f"The {slots['wheel']} tire has {pressure} psi.", pressure


def _fuel(slots: Slots, memory: Memory) -> Plan:
    seen = yield "displayCarStatus", {"option": "fuel"}
    return f"There are {number(seen['fuelLevel'])} gallons left.", number(seen["fuelLevel"])


def _draw_distance(draw: Draw) -> Slots:
    pairs = [(a, b) for a, za in _ZIPS.items() for b, zb in _ZIPS.items() if frozenset((za, zb)) in _KNOWN]
    start, end = draw.pick(pairs)
    return {"city": start, "to_city": end}


def _distance(slots: Slots) -> Generator[Step, Any, str]:
    start = yield "get_zipcode_based_on_city", {"city": slots["city"]}
    end = yield "get_zipcode_based_on_city", {"city": slots["to_city"]}
    found = yield "estimate_distance", {"cityA": start["zipcode"], "cityB": end["zipcode"]}
    return number(found["distance"])


def _say_distance(slots: Slots, memory: Memory) -> Plan:
    distance = yield from _distance(slots)
    return f"It is {distance} km.", distance


def _draw_tell_tire(draw: Draw) -> Slots:
    return {**_draw_wheel(draw), "name": draw.pick(list(draw.state[MESSAGES]["user_map"])[1:])}


def _tell_tire(slots: Slots, memory: Memory) -> Plan:
    seen = yield "check_tire_pressure", {}
    found = yield "get_user_id", {"user": slots["name"]}
    pressure = number(seen[_WHEELS[slots["wheel"]]])
    yield "send_message", {"receiver_id": found["user_id"], "message": pressure}
    return NOTHING


# sums


def _numbers(words: str) -> list[float]:
    return [float(n) for n in words.replace(" and ", ", ").split(", ")]


def _draw_numbers(draw: Draw) -> Slots:
    numbers = [str(draw.rng.randrange(12, 480)) for _ in range(draw.pick((4, 5)))]
    return {"numbers": f"{', '.join(numbers[:-1])} and {numbers[-1]}"}


def _compute(tool: str, says: str) -> Any:
    def plan(slots: Slots, memory: Memory) -> Plan:
        found = yield tool, {"numbers": _numbers(slots["numbers"])}
        return says.format(number(found["result"])), number(found["result"])

    return plan


def _draw_readings(draw: Draw) -> Slots:
    slots, folder = file_in(draw)
    lines = text_of(folder, slots["file"]).splitlines()
    if not lines or not all(line.isdigit() for line in lines):
        raise Infeasible
    return slots


def _file_mean(slots: Slots, memory: Memory) -> Plan:
    text = yield from reads(slots, memory)
    found = yield "mean", {"numbers": [float(line) for line in text.splitlines()]}
    return f"The mean is {number(found['result'])}.", number(found["result"])


def _draw_share(draw: Draw) -> Slots:
    whole = draw.pick((20, 25, 40, 50, 200, 400))
    return {"part": str(draw.rng.randrange(whole // 5, whole)), "whole": str(whole)}


def _share(slots: Slots, memory: Memory) -> Plan:
    found = yield "percentage", {"part": float(slots["part"]), "whole": float(slots["whole"])}
    return f"That is {number(found['result'])} percent.", number(found["result"])


_NO_GALLONS = Missing(
    ("put fuel into the tank of my car", "fill some fuel into the car"),
    "How many gallons?",
    ("Make it {gallons} gallons.", "I want {gallons} gallons."),
    ("10.0", "5.0"),
)

RECIPES = (
    Recipe(
        "car_fill", (CAR,), _draw_fill, _fill,
        ("put {gallons} gallons of fuel into the car", "fill {gallons} gallons into the tank of my car"),
        open=True, missing={"gallons": _NO_GALLONS},
    ),
    Recipe(
        "car_liters", (CAR,), _draw_liters, _fill_liters,
        (
            "put {liters} liters of fuel into the car, rounded to whole gallons",
            "convert {liters} liters to gallons, round that to a whole number and fill it into the tank",
        ),
        narrow=True, weight=1.5,
    ),
    Recipe(
        "car_start", (CAR,), _draw_stopped, _start,
        (
            "lock all doors and start the engine of my car",
            "get the car going: doors locked, brake pressed, engine on",
            "start the car, with every door locked first",
        ),
        narrow=True, weight=2.0,
    ),
    Recipe(
        "car_cruise", (CAR,), _draw_cruise, _cruise,
        (
            "set the cruise control to {speed} and keep {meters} meters of distance",
            "turn on cruise control at a speed of {speed}, {meters} meters behind the next car",
        ),
        open=True, weight=2.0,
    ),
    Recipe(
        "car_lights", (CAR,), _draw_lights, _lights,
        ("turn the headlights {switch}", "switch my headlights {switch}"),
        narrow=True,
    ),
    Recipe(
        "car_brake", (CAR,), _draw_brake, _brake,
        ("{brake} the parking brake", "{brake} the parking brake of my car"),
        narrow=True,
    ),
    Recipe(
        "car_navigate", (CAR,), _draw_street, _navigate,
        ('set the navigation to "{place}"', 'have the car take me to "{place}"'),
        open=True,
    ),
    Recipe(
        "car_climate", (CAR,), _draw_climate, _climate,
        (
            "set the climate control to {degrees} degrees celsius, fan speed {fan}, mode {air}",
            "make it {degrees} degrees celsius in the car with fan speed {fan} and the mode {air}",
        ),
        open=True,
    ),
    Recipe(
        "car_tire", (CAR,), _draw_wheel, _tire,
        ("tell me the pressure of the {wheel} tire", "check the tires and tell me the pressure of the {wheel} one"),
        narrow=True,
    ),
    Recipe(
        "car_fuel", (CAR,), lambda draw: {}, _fuel,
        ("tell me how much fuel is in the car", "check how many gallons of fuel I have left"),
        narrow=True,
    ),
    Recipe(
        "car_distance", (CAR,), _draw_distance, _say_distance,
        ("tell me how far it is from {city} to {to_city} by car", "find out the distance from {city} to {to_city}"),
        narrow=True,
    ),
    Recipe(
        "car_tell", (CAR, MESSAGES), _draw_tell_tire, _tell_tire,
        (
            "send {name} the pressure of the {wheel} tire, nothing but the number",
            "check the {wheel} tire and message {name} just the number of its pressure",
        ),
        needs="message_login", weight=2.0,
    ),
    Recipe(
        "math_mean", (MATH,), _draw_numbers, _compute("mean", "The mean is {}."),
        ("work out the mean of {numbers}", "tell me the average of {numbers}"),
        open=True,
    ),
    Recipe(
        "math_sum", (MATH,), _draw_numbers, _compute("sum_values", "The sum is {}."),
        ("add up {numbers}", "tell me the sum of {numbers}"),
        open=True,
    ),
    Recipe(
        "math_share", (MATH,), _draw_share, _share,
        ("work out what percentage {part} is of {whole}", "tell me how many percent of {whole} {part} is"),
        open=True,
    ),
    Recipe(
        "math_file", (FILES, MATH), _draw_readings, _file_mean,
        (
            "work out the mean of the numbers in {file} in {folder}",
            "read the numbers in {file} in {folder} and tell me their average",
        ),
        weight=2.0,
    ),
)  # fmt: skip
