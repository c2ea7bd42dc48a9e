"""What users with traits say besides: whole sentences, so that any of them can stand before another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SAYS: Mapping[str, Sequence[str]] = {
    "why": (
        "What do you need that for?",
        "Why do you want to know that?",
        "Is that really necessary?",
        "Do you have to ask that?",
    ),
    "hurry": (
        "Please hurry.",
        "Come on, I am in a hurry.",
        "Make it quick.",
        "Please be quick, I have little time.",
        "This takes too long.",
    ),
    "threat": (
        "If this goes on I am leaving.",
        "One more round of this and I am gone.",
        "I am about to lose my patience.",
    ),
    "aside": (
        "By the way, do you have an app for the phone as well?",
        "Before I go on: are you there on Sundays, too?",
        "Another thing, is there a newsletter that I could get?",
        "By the way, are you hiring at the moment?",
        "While I think of it: how did you come by your name?",
        "Oh, by the way, do you have a shop in town?",
        "Before I go on: is this chat recorded?",
        "By the way, does your company sponsor a football club?",
    ),
    "change": (
        "Hm, wait, let me change that.",
        "Oh, wait, I have another idea.",
        "Wait, I would like it otherwise.",
    ),
    "hesitate": (
        "Hm, wait, let me think about it.",
        "Wait, not yet, I am not sure.",
        "Hold on, I have to think about it.",
    ),
    "return": (
        "No, wait, back to what I said before.",
        "On second thought, no, as I said at first.",
        "No, I come back to my first idea.",
    ),
    "settled": (
        "I have thought about it.",
        "Now I have made up my mind.",
    ),
    "slip": (
        "Sorry, I made a mistake there.",
        "Wait, I made a mistake.",
        "Sorry, I misspoke.",
        "No, I made a mistake with that.",
    ),
}
"""By what they are for. None of them holds a fact, names a request, agrees to anything or drops it."""

WISH = ("I want to {}.", "I'd like to {}.", "What I want is to {}.")
"""A request behind one of these sentences."""

LEAVES = (
    "That is it, I am leaving.",
    "I have no more time for this.",
    "This takes too long, I will try somewhere else.",
)
"""The last words of one who leaves because it takes too long."""

TRANSLATED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "de": {
        "why": ("Wozu brauchen Sie das?", "Muss ich das sagen?"),
        "hurry": ("Bitte schnell.", "Ich habe es eilig."),
        "threat": ("Wenn das so weitergeht, gehe ich.",),
        "aside": ("Übrigens, haben Sie auch eine App?", "Sind Sie auch sonntags da?"),
        "change": ("Moment, doch lieber anders.",),
        "hesitate": ("Moment, das muss ich mir überlegen.",),
        "return": ("Nein, doch so wie vorher.",),
        "settled": ("Jetzt weiß ich es.",),
        "slip": ("Entschuldigung, ich habe mich geirrt.", "Das war ein Versehen von mir."),
        "gives_up": ("So lange warte ich nicht.",),
    },
    "es": {
        "why": ("¿Para qué necesita eso?", "¿Tengo que decirlo?"),
        "hurry": ("Rápido, por favor.", "Tengo prisa."),
        "threat": ("Si esto sigue así, me voy.",),
        "aside": ("Por cierto, ¿tienen una aplicación?", "¿Atienden también los domingos?"),
        "change": ("Espere, mejor de otra manera.",),
        "hesitate": ("Espere, tengo que pensarlo.",),
        "return": ("No, mejor como al principio.",),
        "settled": ("Lo he pensado.",),
        "slip": ("Perdón, me he equivocado.",),
        "gives_up": ("No espero más.",),
    },
    "fr": {
        "why": ("Pourquoi en avez-vous besoin ?", "Dois-je vraiment le dire ?"),
        "hurry": ("Vite, s'il vous plaît.", "Je suis pressé."),
        "threat": ("Si ça continue, je m'en vais.",),
        "aside": ("Au fait, avez-vous une application ?", "Êtes-vous là le dimanche aussi ?"),
        "change": ("Attendez, plutôt autrement.",),
        "hesitate": ("Attendez, il faut que je réfléchisse.",),
        "return": ("Non, finalement comme au début.",),
        "settled": ("Voilà, j'ai réfléchi.",),
        "slip": ("Pardon, je me suis trompé.",),
        "gives_up": ("Je n'attends plus.",),
    },
    "zh": {
        "why": ("您要这个做什么?", "一定要说吗?"),
        "hurry": ("请快一点。", "我赶时间。"),
        "threat": ("再这样我就走了。",),
        "aside": ("顺便问一下,你们有手机应用吗?", "你们星期天也在吗?"),
        "change": ("等一下,换个方式吧。",),
        "hesitate": ("等一下,我得想想。",),
        "return": ("不,还是按原来的。",),
        "settled": ("我想好了。",),
        "slip": ("抱歉,我说错了。",),
        "gives_up": ("我不等了。",),
    },
}
"""The same in other languages, by code; "gives_up": for LEAVES."""

OF: Mapping[str, str] = {text: name for name, texts in SAYS.items() for text in texts} | dict.fromkeys(
    LEAVES, "gives_up"
)
"""What a sentence is for."""
