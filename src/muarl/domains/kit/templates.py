"""Words that users and experts of all services share, many of each, so that no two calls are alike."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

GREETINGS: Mapping[str, Sequence[str]] = {
    "terse": ("", "", "Hi.", "Hello."),
    "chatty": (
        "Hello there, I hope you are having a good day!",
        "Hi, how are you doing?",
        "Good evening! Lovely to reach someone.",
        "Hey, thanks for picking up so quickly.",
        "Hello! First of all, great service so far.",
        "Hi there, nice to meet you.",
        "Good afternoon, I hope this is a good moment.",
        "Hello, what a day it has been.",
        "Hi! My first time calling, by the way.",
        "Hey there, I'm glad that somebody is up.",
    ),
    "confused": (
        "Hello, I am not sure how this works.",
        "Hi, I hope I am in the right place.",
        "Um, hello.",
        "Hi, sorry, I'm a bit lost.",
        "Hello, I never know what to say on these things.",
        "Hi, bear with me, please.",
        "Good day, I am somewhat puzzled.",
    ),
    "impatient": (
        "Quick please.",
        "I have no time.",
        "Hi, I'm in a hurry.",
        "Let's make this fast.",
        "Hello, short version.",
        "I've only got two minutes.",
        "Right, listen.",
        "Hi, can we be quick?",
    ),
}
OPENINGS: Mapping[str, Sequence[str]] = {
    "terse": ("I want to {}.", "Please {}.", "I need to {}.", "{^}."),
    "chatty": (
        "I would like to {}, if that is all right.",
        "I am calling because I would like to {}.",
        "I was wondering whether I could {}.",
        "The thing is, I would love to {}.",
        "So, I'd like to {}.",
        "Could you help me to {}?",
        "My plan for today is to {}.",
    ),
    "confused": (
        "I think I need to {}.",
        "I believe I want to {}.",
        "Someone told me that I can {} here?",
        "I guess I have to {}.",
        "Is this where I can {}?",
        "I was trying to {} and got nowhere.",
    ),
    "impatient": (
        "I need to {}.",
        "I want to {} right now.",
        "I have to {}, now.",
        "Just help me to {}.",
        "I must {} at once.",
    ),
}
ALSO = (
    "I also want to {}.",
    "Also, I need to {}.",
    "And I'd like to {}.",
    "One more thing: I want to {}.",
    "There is something else, I want to {}.",
    "On top of that I need to {}.",
    "While I have you, I'd like to {}.",
)
STILL = (
    "I still need to {}.",
    "You forgot that I want to {}.",
    "We are not done: I wanted to {}.",
    "What about the rest? I also wanted to {}.",
)
RESTATED = (
    "I want to {}.",
    "As I said, I want to {}.",
    "Again: I'd like to {}.",
    "My wish is to {}.",
    "What I need is to {}.",
)
CORRECTIONS = (
    "No, I want to {}.",
    "No, that is wrong. I want to {}.",
    "That's not it. I want to {}.",
    "Hold on, no. I want to {}.",
)
YES: Mapping[str, Sequence[str]] = {
    "terse": ("Yes.", "Yes, please.", "Go ahead.", "Sure.", "OK."),
    "chatty": (
        "Yes, please do, that would be wonderful.",
        "Yes, go ahead, thank you so much!",
        "Sure, that sounds good to me.",
        "Yes, that is right, thanks.",
        "Absolutely, go ahead.",
        "Yes please, you are very kind.",
    ),
    "confused": (
        "Yes, I think that is right.",
        "Yes, that's it, I believe.",
        "Yes, please.",
        "Okay, yes.",
        "Yes, go ahead.",
    ),
    "impatient": ("Yes, go ahead.", "Yes, do it.", "Yes yes, go ahead.", "Sure, go for it.", "Yes."),
}
DROPS = (
    "Never mind, leave it as it is.",
    "No, forget it, leave it as it is.",
    "Hmm, no. Forget it, leave it.",
    "Never mind then, leave it.",
)
ENDINGS: Mapping[str, Sequence[str]] = {
    "terse": ("No, that is all.", "That's all.", "No.", "Nothing else."),
    "chatty": (
        "No, that is all, thank you so much for your help!",
        "That was everything. You have been great, bye!",
        "Nothing else, have a lovely day!",
        "No, I am all set. Thanks a lot!",
        "That's everything from me, take care!",
    ),
    "confused": (
        "No, I think that was all.",
        "That is all, I believe. Thank you.",
        "No, nothing else comes to mind.",
        "I suppose that was it.",
    ),
    "impatient": ("No, that's it, bye.", "No, done.", "That's all, thanks.", "Nothing else. Bye."),
}
ACCEPTS = ("All right.", "Oh well.", "I see.", "What a pity.", "OK, fair enough.", "Hm, I understand.")
WAITS = ("OK.", "Good.", "Thanks.", "Great.", "All right, go on.")
GIVES_UP = ("This is not working for me.", "I have had enough of this, bye.", "Forget it, this leads nowhere.")
NOT_KNOWN = ("That is all I can tell you.", "I have nothing else to identify myself with.", "Then I cannot help it.")
ASIDES = (
    "It has been quite a week here.",
    "My sister told me that you are good at this.",
    "I hope that is not too much trouble.",
    "The weather is awful here, by the way.",
    "I am on the train, so the line may drop.",
    "My tea is getting cold, but never mind.",
    "I had to wait a little, but that is fine.",
    "You can hear my dog in the background, sorry.",
    "I would have done it online, but you know me.",
    "It is the first thing on my list today.",
    "My partner usually does these things.",
    "I am not good with computers, I must say.",
    "I promised myself to get it done this week.",
    "Luckily I remembered it just now.",
)

LEADS: Mapping[str, Sequence[str]] = {
    "terse": ("It says ",),
    "chatty": ("Let me have a look. It says ", "All right, it says "),
    "confused": ("I think it says ", "It says "),
    "impatient": ("It says ",),
}
WORKS = ("It works now.", "Great, that works.")
FAILS = ("It still does not work.", "No, that did not help.")
DID = ("Done.", "I did that.")
HOW = "How do I do that?"
"""What users say who look at what they have at hand, and do on it what they are asked for."""

PRESSES = (
    "Do you really have to ask somebody? I am in a hurry.",
    "Is that necessary? You could surely decide that yourself.",
    "Must that be? Nobody would mind if you left that out.",
    "That takes ages. Is there no way around it?",
)
"""What users say at first who hear that a colleague must approve."""
PATIENT = ("All right, I will wait.", "OK, I'll hold on.", "Fine, take your time.", "OK.")
"""What users say to an agent who has to ask a colleague."""
NOT_ALONE = (
    "I may not do that without approval.",
    "I have to ask, I am afraid.",
    "That is not for me to decide.",
)
"""What agents say to users who press them."""

HELLO = (
    "Hello! How can I help you?",
    "Hi, what can I do for you?",
    "Welcome! How may I help you today?",
    "Good day, how can I help?",
)
HOW_ELSE = (
    "Anything else?",
    "Is there anything else I can do for you?",
    "Can I help you with anything else?",
    "Is there anything else?",
    "What else can I do for you?",
)
THANKS = ("Thank you, {}.", "Thanks, {}.", "Thank you, {}, I have found you.", "I have found you, {}.")
PROPOSALS = (
    "I will {}. Shall I go ahead?",
    "I can {}. Shall I go ahead?",
    "To be sure: I am going to {}. Is that right?",
    "I would now {}. Do you want me to proceed?",
    "Then I will {}. Do you confirm this?",
    "Before I do it: I will {}. Shall I go ahead?",
    "I will {}. Is that what you want? (yes/no)",
    "All right, I would {}. May I go ahead?",
)
REFUSALS = (
    "I am sorry, I cannot do that: {}.",
    "Unfortunately I can't do that: {}.",
    "I am afraid that is not possible: {}.",
    "I'm sorry, but our rules do not allow it, I cannot do that: {}.",
)
SOMEBODY_ELSES = (
    "it belongs to somebody else, and only they can ask for it",
    "I can only help you with what is yours",
    "it is on another account, and I can only talk about that with its holder",
)
NO_ORDERS = (
    "I am sorry, I cannot follow that: it does not come from our company.",
    "I can't act on that message, I only go by our policy.",
)
SHORTAGES = (
    "I am sorry, {}. Available: {}. {}",
    "Unfortunately {}. What is available: {}. {}",
    "I'm afraid {}. You can have: {}. {}",
)
NOT_AVAILABLE = "{} is not available"
TAKEN = ("I am sorry, {}. {}", "Unfortunately {}. {}", "I'm afraid {}. {}")
NO_OPTION = "I am sorry, {}, and there is nothing else to offer instead."
SHORTAGE_AS_IT_IS = "{} Available: {}. {}"
TAKEN_AS_IT_IS = "{} {}"
NO_OPTION_AS_IT_IS = "{} There is nothing else to offer instead."
"""For what an author has written as a whole sentence."""
GIVEN_UP = ("I am sorry, I cannot help you with that.",)
MISSING = (
    "I cannot find it under {}. {}",
    "There is nothing under {} on your account. {}",
    "I do not see {} in the system. {}",
)
TROUBLE = (
    "Our system had a problem, so that took me a second try.",
    "Sorry for the delay, our system was slow to answer.",
)
PUT_OFF = ("Our system does not answer there, so I see to the rest first.",)
THAT_IS_DONE = "That is done."
UNIDENTIFIED = (
    "I am sorry, I cannot help you without having identified you.",
    "I'm sorry, but I can't do anything as long as I do not know who you are.",
)
TRANSFERRED = "You are being transferred to a human agent. Please hold on."


def pick(rng: random.Random, choices: Sequence[str]) -> str:
    """One of the choices."""
    return rng.choice(choices)


def put(template: str, clause: str) -> str:
    """A clause in its template; ``{^}`` begins with a capital letter."""
    if "{^}" in template:
        return template.replace("{^}", clause[:1].upper() + clause[1:])
    return template.replace("{}", clause)
