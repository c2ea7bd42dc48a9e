"""What users want done with a car, and worked out (VehicleControlAPI, MathAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.generated import Infeasible
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.parts import facts
from muarl_worlds.bfcl.recipes import Scene, asked, drawn, number, one_of, recipe, slot
from muarl_worlds.bfcl.recipes_files import FILE, FILES, FOLDER, QUOTED, a_file, reads
from muarl_worlds.bfcl.recipes_people import MESSAGES, NAME, user_id
from muarl_worlds.bfcl.recipes_trips import CITY, TO_CITY
from muarl_worlds.bfcl.scenes import MATH

CAR = "VehicleControlAPI"
DOORS = ["driver", "passenger", "rear_left", "rear_right"]
_ZIPS: dict[str, str] = facts("vehicle")["zipcodes"]
_KNOWN = {frozenset((a, b)) for a, b, _ in facts("vehicle")["distances"]}
_WHEELS = {
    "front left": "frontLeftTirePressure", "front right": "frontRightTirePressure",
    "rear left": "rearLeftTirePressure", "rear right": "rearRightTirePressure",
}  # fmt: skip
_PAIRS = [Record({"city": a, "to_city": b}) for a in _ZIPS for b in _ZIPS if frozenset((_ZIPS[a], _ZIPS[b])) in _KNOWN]


def _room(d: Any) -> float:
    return float(50 - d.tables[CAR].fuelLevel)


def _liters(d: Any) -> list[int]:
    """Amounts that there is room for, and that are not nearly whole gallons."""
    amounts = {n: n * 0.264172 for n in range(20, 130, 5)}
    return [n for n, gallons in amounts.items() if round(gallons) < _room(d) and 0.1 < gallons % 1 < 0.9]


def _street(scene: Scene) -> str:
    place = f"{scene.pick(pools.STREETS)}, {scene.pick(sorted(_ZIPS))}"
    if place == scene.tables[CAR].destination:
        raise Infeasible
    return place


def _numbers(scene: Scene) -> str:
    numbers = [str(scene.pick(range(12, 480))) for _ in range(scene.pick((4, 5)))]
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"


def _readings(text: str) -> bool:
    return bool(text) and all(line.isdigit() for line in text.splitlines())


GALLONS = asked(
    slot("gallons", r"\d+\.\d+", lambda d: [n / 2 for n in range(4, 70) if n / 2 < _room(d)]), "How many gallons?",
    "Make it {} gallons.", "I want {} gallons.", guess=("10.0", "5.0"),
)  # fmt: skip
SWITCH = slot("switch", "on|off", lambda d: "off" if d.tables[CAR].headLightStatus == "on" else "on")
BRAKE = slot(
    "brake", "engage|release", lambda d: "release" if d.tables[CAR].parkingBrakeStatus == "engaged" else "engage"
)
WHEEL = slot("wheel", one_of(_WHEELS), lambda d: sorted(_WHEELS))
NUMBERS = slot("numbers", r"\d+(?:, \d+)* and \d+", _numbers)
WHOLE = slot("whole", r"\d+", lambda d: (20, 25, 40, 50, 200, 400))


@recipe(
    CAR, "put {gallons} gallons of fuel into the car", "fill {gallons} gallons into the tank of my car",
    "put fuel into the tank of my car", "fill some fuel into the car", slots=(GALLONS,), open=True,
)  # fmt: skip
def car_fill(it: Plan) -> None:
    it.do("fillFuelTank", fuelAmount=float(it.gallons))


@recipe(
    CAR, "put {liters} liters of fuel into the car, rounded to whole gallons",
    "convert {liters} liters to gallons, round that to a whole number and fill it into the tank",
    slots=(slot("liters", r"\d+", _liters),), narrow=True, weight=1.5,
)  # fmt: skip
def car_liters(it: Plan) -> None:
    changed = it.look("liter_to_gallon", liter=float(it.liters))
    it.do("fillFuelTank", fuelAmount=float(round(changed.gallon)))


@recipe(
    CAR, "lock all doors and start the engine of my car", "get the car going: doors locked, brake pressed, engine on",
    "start the car, with every door locked first", when=lambda d: d.tables[CAR].engine_state != "running", narrow=True,
    weight=2.0,
)  # fmt: skip
def car_start(it: Plan) -> None:
    it.do("lockDoors", unlock=False, door=list(DOORS))
    it.do("pressBrakePedal", pedalPosition=1.0)
    it.do("startEngine", ignitionMode="START")


@recipe(
    CAR, "set the cruise control to {speed} and keep {meters} meters of distance",
    "turn on cruise control at a speed of {speed}, {meters} meters behind the next car",
    slots=(slot("speed", r"\d+", lambda d: range(40, 110, 5)), slot("meters", r"\d+", lambda d: range(20, 150, 5))),
    when=lambda d: d.tables[CAR].engine_state == "running", open=True, weight=2.0,
)  # fmt: skip
def car_cruise(it: Plan) -> None:
    it.do("setCruiseControl", speed=float(it.speed), activate=True, distanceToNextVehicle=float(it.meters))


@recipe(CAR, "turn the headlights {switch}", "switch my headlights {switch}", slots=(SWITCH,), narrow=True)
def car_lights(it: Plan) -> None:
    it.do("setHeadlights", mode=it.switch)


@recipe(
    CAR, "let go of the brake pedal", "take the pressure off the brake pedal",
    when=lambda d: d.tables[CAR].brakePedalStatus == "pressed", narrow=True, weight=3.0,
)  # fmt: skip
def car_let_go(it: Plan) -> None:
    it.do("releaseBrakePedal")


@recipe(
    CAR, "{brake} the parking brake", "{brake} the parking brake of my car", slots=(BRAKE,), narrow=True, weight=2.0
)  # fmt: skip
def car_brake(it: Plan) -> None:
    it.do("activateParkingBrake", mode=it.brake)


@recipe(
    CAR, 'set the navigation to "{place}"', 'have the car take me to "{place}"',
    slots=(slot("place", QUOTED, _street),), open=True,
)  # fmt: skip
def car_navigate(it: Plan) -> None:
    it.do("set_navigation", destination=it.place)


@recipe(
    CAR, "set the climate control to {degrees} degrees celsius, fan speed {fan}, mode {air}",
    "make it {degrees} degrees celsius in the car with fan speed {fan} and the mode {air}",
    slots=(
        slot("degrees", r"\d+\.\d+", lambda d: [n / 2 for n in range(33, 56)]),
        slot("fan", r"\d+", lambda d: range(10, 95, 5)),
        slot("air", "cool|heat|defrost", lambda d: ("cool", "heat", "defrost")),
    ),
    open=True,
)  # fmt: skip
def car_climate(it: Plan) -> None:
    it.do("adjustClimateControl", temperature=float(it.degrees), fanSpeed=int(it.fan), mode=it.air)


def _pressure(it: Plan) -> str:
    return number(it.look("check_tire_pressure")[_WHEELS[it.wheel]])


@recipe(
    CAR, "tell me the pressure of the {wheel} tire", "check the tires and tell me the pressure of the {wheel} one",
    slots=(WHEEL,), narrow=True,
)  # fmt: skip
def car_tire(it: Plan) -> None:
    it.pressure = _pressure(it)
    it.answer("The {wheel} tire has {pressure} psi.", tell="{pressure}")


@recipe(CAR, "tell me how much fuel is in the car", "check how many gallons of fuel I have left", narrow=True)
def car_fuel(it: Plan) -> None:
    it.left = number(it.look("displayCarStatus", option="fuel").fuelLevel)
    it.answer("There are {left} gallons left.", tell="{left}")


@recipe(
    CAR, "tell me how far it is from {city} to {to_city} by car", "find out the distance from {city} to {to_city}",
    slots=(drawn(CITY, lambda d: _PAIRS, "city"), TO_CITY), narrow=True,
)  # fmt: skip
def car_distance(it: Plan) -> None:
    start = it.look("get_zipcode_based_on_city", city=it.city).zipcode
    end = it.look("get_zipcode_based_on_city", city=it.to_city).zipcode
    it.distance = number(it.look("estimate_distance", cityA=start, cityB=end).distance)
    it.answer("It is {distance} km.", tell="{distance}")


@recipe(
    (CAR, MESSAGES), "send {name} the pressure of the {wheel} tire, nothing but the number",
    "check the {wheel} tire and message {name} just the number of its pressure", slots=(WHEEL, NAME),
    needs="message_login", weight=2.0,
)  # fmt: skip
def car_tell(it: Plan) -> None:
    pressure = _pressure(it)
    it.do("send_message", receiver_id=user_id(it), message=pressure)


# sums


def _result(it: Plan, tool: str, numbers: list[str]) -> str:
    return number(it.look(tool, numbers=[float(n) for n in numbers]).result)


@recipe(MATH, "work out the mean of {numbers}", "tell me the average of {numbers}", slots=(NUMBERS,), open=True)
def math_mean(it: Plan) -> None:
    it.mean = _result(it, "mean", it.numbers.replace(" and ", ", ").split(", "))
    it.answer("The mean is {mean}.", tell="{mean}")


@recipe(MATH, "add up {numbers}", "tell me the sum of {numbers}", slots=(NUMBERS,), open=True)
def math_sum(it: Plan) -> None:
    it.sum = _result(it, "sum_values", it.numbers.replace(" and ", ", ").split(", "))
    it.answer("The sum is {sum}.", tell="{sum}")


@recipe(
    MATH, "work out what percentage {part} is of {whole}", "tell me how many percent of {whole} {part} is",
    slots=(WHOLE, slot("part", r"\d+", lambda d: range(d.whole // 5, d.whole))), open=True,
)  # fmt: skip
def math_share(it: Plan) -> None:
    it.share = number(it.look("percentage", part=float(it.part), whole=float(it.whole)).result)
    it.answer("That is {share} percent.", tell="{share}")


@recipe(
    (FILES, MATH), "work out the mean of the numbers in {file} in {folder}",
    "read the numbers in {file} in {folder} and tell me their average",
    slots=(drawn(FILE, a_file(fits=_readings), "file"), FOLDER), weight=2.0,
)  # fmt: skip
def math_file(it: Plan) -> None:
    it.mean = _result(it, "mean", reads(it).splitlines())
    it.answer("The mean is {mean}.", tell="{mean}")
