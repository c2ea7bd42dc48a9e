"""VehicleControlAPI: engine, doors, climate, brakes, cruise control and navigation of a car (BFCL vehicle_control)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import Draws, Literals, facts, initial, named, twin

_FACTS = facts("vehicle")
_ATTRIBUTES = {
    "engineState": "engine_state", "parkingBrakeForce": "_parkingBrakeForce", "slopeAngle": "_slopeAngle",
    "brakePedalForce": "_brakePedalForce",
}  # fmt: skip
"""What a scenario calls otherwise than the class."""
_DISTANCES: Mapping[frozenset[str], float] = {frozenset((a, b)): far for a, b, far in _FACTS["distances"]}
_TANK = 50
"""Gallons."""
_MILES_PER_GALLON = 20.0


@named
class VehicleControlAPI(Api):
    """The car, the same in both revisions."""

    name = "VehicleControlAPI"

    fuelLevel: Any
    batteryVoltage: Any
    engine_state: Any
    remainingUnlockedDoors: int
    doorStatus: dict[str, Any]
    acTemperature: Any
    fanSpeed: Any
    acMode: Any
    humidityLevel: Any
    headLightStatus: Any
    parkingBrakeStatus: Any
    brakePedalStatus: Any
    distanceToNextVehicle: Any
    cruiseStatus: Any
    destination: Any
    frontLeftTirePressure: Any
    frontRightTirePressure: Any
    rearLeftTirePressure: Any
    rearRightTirePressure: Any
    long_context: bool

    _parkingBrakeForce: Any
    _slopeAngle: Any
    _brakePedalForce: Any

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        state = initial(config, _FACTS["state"])
        self._random = Draws(state.pop("random_seed"))
        vars(self).update({_ATTRIBUTES.get(name, name): value for name, value in state.items()})
        self.remainingUnlockedDoors = 4 - len([1 for status in self.doorStatus.values() if status == "locked"])
        self.long_context = long_context is not None
        self._literals = Literals(long_context)
        self._weather: dict[str, Any] | None = None

    def copy(self) -> Self:
        return twin(self)

    @tool(writes=True)
    def startEngine(self, ignitionMode: str) -> dict[str, Any]:
        """Start the engine: the doors must be locked and the brake fully pressed.

        ignitionMode: START or STOP.
        """
        if ignitionMode == "STOP":
            self.engine_state = "stopped"  # and all that follows is asked for nevertheless
        if self.remainingUnlockedDoors > 0:
            unlocked = ", ".join([door for door, status in self.doorStatus.items() if status == "unlocked"])
            text = "All doors must be locked before starting the engine. Here are the unlocked doors: "
            return {"error": text + unlocked}
        if self.brakePedalStatus != "pressed":
            return {"error": "Brake pedal needs to be pressed when starting the engine."}
        if self._brakePedalForce != 1000.0:
            return {"error": "Must press the brake fully before starting the engine."}
        if self.fuelLevel < 0.0:
            return {"error": "Fuel tank is empty."}
        if ignitionMode != "START":
            return {"error": "Invalid ignition mode."}
        self.engine_state = "running"
        return {"engineState": "running", "fuelLevel": self.fuelLevel, "batteryVoltage": self.batteryVoltage}

    @tool(writes=True)
    def fillFuelTank(self, fuelAmount: float) -> dict[str, Any]:
        """Fill fuel into the tank, which holds 50 gallons.

        fuelAmount: how much to add, in gallons.
        """
        if fuelAmount < 0:
            return {"error": "Fuel amount cannot be negative."}
        if self.fuelLevel + fuelAmount > _TANK:
            return {"error": "Cannot fill gas above the tank capacity."}
        if self.fuelLevel + fuelAmount < 0.0:
            return {"error": "Fuel tank is empty. Min fuel level is 0 gallons."}
        self.fuelLevel += fuelAmount
        return {"fuelLevel": self.fuelLevel}

    @tool(writes=True)
    def lockDoors(self, unlock: bool, door: list[str]) -> dict[str, Any]:
        """Lock or unlock doors.

        unlock: true to unlock them, false to lock them.
        door: which doors: driver, passenger, rear_left, rear_right.
        """
        status, change = ("unlocked", 1) if unlock else ("locked", -1)
        for name in door:
            if self.doorStatus[name] == status:
                continue
            self.doorStatus[name] = status
            self.remainingUnlockedDoors += change
        return {"lockStatus": status, "remainingUnlockedDoors": self.remainingUnlockedDoors}

    @tool(writes=True)
    def adjustClimateControl(
        self, temperature: float, unit: str = "celsius", fanSpeed: int = 50, mode: str = "auto"
    ) -> dict[str, Any]:
        """Set the climate control.

        temperature: the temperature wanted.
        unit: celsius or fahrenheit.
        fanSpeed: from 0 to 100.
        mode: auto, cool, heat or defrost.
        """
        if not (0 <= fanSpeed <= 100):
            return {"error": "Fan speed must be between 0 and 100."}
        self.acTemperature = temperature
        if unit == "fahrenheit":
            self.acTemperature = (temperature - 32) * 5 / 9
        self.fanSpeed = fanSpeed
        self.acMode = mode
        return {"currentACTemperature": temperature, "climateMode": mode, "humidityLevel": self.humidityLevel}

    @tool
    def get_outside_temperature_from_google(self) -> dict[str, Any]:
        """Look up the temperature outside, in degrees Celsius, at Google."""
        if not self.long_context:
            return {"outsideTemperature": self._random.uniform(-10.0, 40.0)}
        if self._weather is None:
            self._weather = self._literals["LONG_WEATHER_EXTENSION"]
        self._weather["outsideTemperature"] = self._random.uniform(-10.0, 40.0)
        return self._weather

    @tool
    def get_outside_temperature_from_weather_com(self) -> dict[str, Any]:
        """Look up the temperature outside at weather.com, which never answers."""
        return {"error": 404}

    @tool(writes=True)
    def setHeadlights(self, mode: str) -> dict[str, Any]:
        """Switch the headlights.

        mode: on, off or auto.
        """
        if mode not in ["on", "off", "auto"]:
            return {"error": "Invalid headlight mode."}
        self.headLightStatus = "on" if mode == "on" else "off"
        return {"headlightStatus": self.headLightStatus}

    @tool
    def displayCarStatus(self, option: str) -> dict[str, Any]:
        """Show one part of the car's status.

        option: fuel, battery, doors, climate, headlights, parkingBrake, brakePedal or engine.
        """
        shown: dict[str, Any] = {}
        if self.long_context:
            shown["metadata"] = self._literals["CAR_STATUS_METADATA_EXTENSION"]
        return shown | self._part(option)

    @tool(writes=True)
    def activateParkingBrake(self, mode: str) -> dict[str, Any]:
        """Set the parking brake.

        mode: engage or release.
        """
        if mode not in ["engage", "release"]:
            return {"error": "Invalid mode"}
        self.parkingBrakeStatus, self._parkingBrakeForce = ("engaged", 500.0) if mode == "engage" else ("released", 0.0)
        self._slopeAngle = 10.0
        shown: dict[str, Any] = {}
        if self.long_context:
            shown["parkingBrakeInstruction"] = self._literals["PARKING_BRAKE_INSTRUCTION"]
        return shown | {
            "parkingBrakeStatus": self.parkingBrakeStatus,
            "_parkingBrakeForce": self._parkingBrakeForce,
            "_slopeAngle": self._slopeAngle,
        }

    @tool(writes=True)
    def pressBrakePedal(self, pedalPosition: float) -> dict[str, Any]:
        """Press the brake pedal and keep it pressed.

        pedalPosition: from 0, not pressed, to 1, fully pressed.
        """
        if not (0 <= pedalPosition <= 1):
            return {"error": "Pedal position must be between 0 and 1."}
        if pedalPosition == 0:
            return self._release()
        force = pedalPosition * 1000
        self.brakePedalStatus = "pressed"
        self._brakePedalForce = force
        return {"brakePedalStatus": "pressed", "brakePedalForce": float(force)}

    @tool(writes=True)
    def releaseBrakePedal(self) -> dict[str, Any]:
        """Release the brake pedal."""
        return self._release()

    @tool(writes=True)
    def setCruiseControl(self, speed: float, activate: bool, distanceToNextVehicle: float) -> dict[str, Any]:
        """Set the cruise control while the engine runs.

        speed: from 0 to 120 miles per hour, a multiple of 5.
        activate: true to switch it on, false to switch it off.
        distanceToNextVehicle: the distance to keep, in metres.
        """
        distance = float(distanceToNextVehicle)
        speed = float(speed)
        if self.engine_state == "stopped":
            return {"error": "Start the engine before activating the cruise control."}
        self.distanceToNextVehicle = distance
        if activate and (speed < 0 or speed > 120 or speed % 5 != 0):
            return {"error": "Invalid speed"}
        self.cruiseStatus = "active" if activate else "inactive"
        return {"cruiseStatus": self.cruiseStatus, "currentSpeed": speed, "distanceToNextVehicle": distance}

    @tool
    def get_current_speed(self) -> dict[str, Any]:
        """Tell how fast the car is."""
        return {"currentSpeed": self._random.uniform(0.0, 120.0)}

    @tool
    def display_log(self, messages: list[str]) -> dict[str, Any]:
        """Show messages on the car's display.

        messages: what to show.
        """
        return {"log": messages}

    @tool
    def estimate_drive_feasibility_by_mileage(self, distance: float) -> dict[str, Any]:
        """Say whether the fuel suffices for a distance.

        distance: how far, in miles.
        """
        return {"canDrive": not (self.fuelLevel * _MILES_PER_GALLON < distance)}

    @tool
    def liter_to_gallon(self, liter: float) -> dict[str, Any]:
        """Convert litres to gallons.

        liter: how many litres.
        """
        return {"gallon": liter * 0.264172}

    @tool
    def gallon_to_liter(self, gallon: float) -> dict[str, Any]:
        """Convert gallons to litres.

        gallon: how many gallons.
        """
        return {"liter": gallon * 3.78541}

    @tool
    def estimate_distance(self, cityA: str, cityB: str) -> dict[str, Any]:
        """Estimate the distance between two cities.

        cityA: the zip code of the one.
        cityB: the zip code of the other.
        """
        known = isinstance(cityA, str) and isinstance(cityB, str) and _DISTANCES.get(frozenset((cityA, cityB)))
        found: dict[str, Any] = {"distance": known} if known else {"error": "distance not found in database."}
        if self.long_context:
            found["intermediaryCities"] = self._literals["INTERMEDIARY_CITIES"]
        return found

    @tool
    def get_zipcode_based_on_city(self, city: str) -> dict[str, Any]:
        """Look up the zip code of a city.

        city: the city's name.
        """
        return {"zipcode": _FACTS["zipcodes"].get(city, "00000") if isinstance(city, str) else "00000"}

    @tool(writes=True)
    def set_navigation(self, destination: str) -> dict[str, Any]:
        """Navigate to a place.

        destination: the place as street, city, state.
        """
        self.destination = destination
        return {"status": "Navigating to " + destination}

    @tool
    def check_tire_pressure(self) -> dict[str, Any]:
        """Show the pressure of the tires, in psi, and whether it is right."""
        front_left, front_right = self.frontLeftTirePressure, self.frontRightTirePressure
        rear_left, rear_right = self.rearLeftTirePressure, self.rearRightTirePressure
        return {
            "frontLeftTirePressure": front_left,
            "frontRightTirePressure": front_right,
            "rearLeftTirePressure": rear_left,
            "rearRightTirePressure": rear_right,
            "healthy_tire_pressure": 30 <= (front_left + front_right + rear_left + rear_right) / 4 <= 35,
            "car_info": self._literals["CAR_STATUS_METADATA_EXTENSION"] if self.long_context else {},
        }

    @tool
    def find_nearest_tire_shop(self) -> dict[str, Any]:
        """Tell where the nearest tire shop is."""
        return {"shopLocation": "456 Oakwood Avenue, Rivermist, 83214"}

    def _part(self, option: Any) -> dict[str, Any]:
        if option == "fuel":
            return {"fuelLevel": self.fuelLevel}
        if option == "battery":
            return {"batteryVoltage": self.batteryVoltage}
        if option == "doors":
            return {"doorStatus": self.doorStatus}
        if option == "climate":
            return {
                "currentACTemperature": self.acTemperature,
                "fanSpeed": self.fanSpeed,
                "climateMode": self.acMode,
                "humidityLevel": self.humidityLevel,
            }
        if option == "headlights":
            return {"headlightStatus": self.headLightStatus}
        if option == "parkingBrake":
            return {
                "parkingBrakeStatus": self.parkingBrakeStatus,
                "parkingBrakeForce": self._parkingBrakeForce,
                "slopeAngle": self._slopeAngle,
            }
        if option == "brakePedal":
            return {"brakePedalStatus": self.brakePedalStatus, "brakePedalForce": self._brakePedalForce}
        if option == "engine":
            return {"engineState": self.engine_state}
        return {"error": "Invalid option"}

    def _release(self) -> dict[str, Any]:
        self.brakePedalStatus = "released"
        self._brakePedalForce = 0.0
        return {"brakePedalStatus": "released", "brakePedalForce": 0.0}


REVISIONS: Mapping[Revision, type[Api]] = {"v3": VehicleControlAPI, "v4": VehicleControlAPI}
