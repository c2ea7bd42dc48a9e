"""What a user's message does, people's and simulated ones': declines, gives up, corrects itself, reports something, and
what gives a simulated user away.

Answers to proposals are read by ``consent`` and ``replies``. The readings here are for who looks for the reasons of
what a user does, or for its errors. Most read English alone.
"""

from __future__ import annotations

import re

from muarl.language.sentences import normal_text

# What users want, and no longer want.

_DECLINES = re.compile(
    r"\b(?:no|nope|none|neither|never ?mind|not|nothing|don['’]?t|won['’]?t|can['’]?t|doesn['’]?t|rather|instead|keep"
    r"|leave it|forget|cancel that|later|some other time|unfortunately|think about it|think it over|second thought"
    r"|call back|give up|myself|as (?:it|they) (?:is|are))\b",
    re.IGNORECASE,
)
_SAYS_NO = re.compile(
    r"^(?:(?!i\b)[\w']+[,!]?\s+){0,2}?(?:no\b(?! (?:problem|worries|rush|doubt|changes|objections?))|nope\b|nah\b"
    r"|don't\b|do not\b|never ?mind|forget it|leave it|keep it|stop\b|not (?:yet|now|today)"
    r"|i(?:'d| would) rather not|i (?:don't|do not) (?:want|agree|think so|approve)|hold (?:on|off)|cancel that"
    r"|absolutely not|i've changed my mind|i changed my mind|i refuse)",
    re.IGNORECASE,
)
_STANDS = re.compile(
    r"\b(?:keep|leave|don't|do not|not\b|never|forget|stop|wait|hold|thanks|thank you|changed my mind|as it is"
    r"|no longer|cancel (?:that|this|it)|nothing|anything|abandon|refuse|decline|too (?:much|expensive|high))",
    re.IGNORECASE,
)
_COUNTERS = re.compile(
    r"\b(?:make it|i want|i need|i meant|i mean|i(?:'d| would) (?:like|prefer|rather (?!not))|instead|rather than"
    r"|it should|it is|it's|change it|switch|use (?:my|the)|let's|how about|what about|put (?:it|me|that|them) down"
    r"|only (?:the|my)|just (?:the|my)|to \d)\b"
)
_ORDERS = re.compile(
    r"\bplease (do|go ahead|proceed|issue|transfer|connect|cancel|book|process|change|update|modify|refund|return"
    r"|exchange|send|add|remove|apply|use|resume|suspend|enable|refuel)\b(?! not\b)",
    re.IGNORECASE,
)
_FED_UP = re.compile(
    r"\b(?:told you|already (?:said|told|gave)|as i said|twice|again and again|(?:i['’]?m|i am) (?:fed up|done with)"
    r"|useless|ridiculous|waste of|not (?:working|helping|helpful)|isn['’]?t (?:working|helping)|leads? nowhere"
    r"|getting nowhere|give up|not work(?:ing)? for me|had enough)\b",
    re.IGNORECASE,
)
_FORGET_IT = re.compile(r"\bforget (?:it|this)\b", re.IGNORECASE)
_PRESSES = re.compile(
    r"\bhurry\b|\b(?:quick|quicker|faster)\b|\basap\b|\b(?:no|little) (?:more )?time\b|\btakes? (?:too|so|very) long\b"
    r"|\btaking (?:too|so|forever)|\bhow (?:much )?long(?:er)?\b|\bi(?:'m| am) (?:leaving|gone|about to)\b"
    r"|\b(?:lose|losing|lost) (?:my )?patience\b|\bwaste of (?:my )?time\b|\bwasting my time\b|\bhad enough\b"
    r"|\bridiculous\b|\bforget it, this\b|\bleads nowhere\b|\bnot working for me\b|\bfed up\b|\bcome on\b",
    re.IGNORECASE,
)
_CHANGES_WISH = re.compile(
    r"\bon second thoughts?\b|\bchanged? my mind\b|\b(?:another|first|better) idea\b|\blike it otherwise\b"
    r"|\blet me (?:change that|think)\b|\bhave to think\b|\bactually,? (?:make|let|can|could|i(?:'d| would)? (?:want"
    r"|like|prefer|rather))|\bback to what i said\b|\bnot yet, i am not sure\b",
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Whether a user may be declining, or putting off."""
    return bool(_DECLINES.search(text))


def beginning_no(text: str) -> str | None:
    """The words with which a message begins by saying no; None if it does not."""
    match = _SAYS_NO.match(text)
    return None if match is None else match[0]


def stands_by_no(text: str) -> bool:
    """Whether a message that begins by saying no says what else a no would say: leave it, keep it, no thanks."""
    return bool(_STANDS.search(text))


def asks_for_something_else(text: str) -> bool:
    """Whether a message asks for something in place of what was proposed."""
    return bool(_COUNTERS.search(text.lower()))


def gives_order(text: str) -> bool:
    """Whether a user tells the agent to do something."""
    return bool(_ORDERS.search(text))


def is_fed_up(text: str) -> bool:
    """Whether a user says that it has had enough, or has said it all before."""
    return bool(_FED_UP.search(text))


def says_forget_it(text: str) -> bool:
    """Whether a user says to forget it."""
    return bool(_FORGET_IT.search(text))


def presses(text: str) -> bool:
    """Whether a user presses for time, or is about to leave."""
    return bool(_PRESSES.search(text))


def changes_wish(text: str) -> bool:
    """Whether a user wants something else than before, or has to think about it."""
    return bool(_CHANGES_WISH.search(text))


# What users know and tell.

_CANNOT_SAY = re.compile(
    r"\b(?:(?:do ?n['’]?t|do not|did ?n['’]?t|can ?['’]?t|cannot|could ?n['’]?t) (?:\w+ ){0,2}(?:have|know|remember"
    r"|recall|find|tell|go on|access|provide)|no idea|not sure|have no|haven['’]?t got)\b",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(
    r"\bwhy\b|\bwhat (?:do|would|for)\b[^?]{0,40}\b(?:for|need|want|matter)\b|\bwhat for\b"
    r"|\b(?:really |that )necessary\b|\bdo (?:i|you) (?:really |still )?(?:have to|need)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\bi (?:made a mistake|misspoke|mistyped)\b|\bback to what i said before\b|\bas i said at first\b"
    r"|\bback to my first idea\b"
    r"|\bhabe mich geirrt\b|\bein versehen von mir\b|\bdoch so wie vorher\b"
    r"|\bme he equivocado\b|\bmejor como al principio\b"
    r"|\bme suis trompé\b|\bfinalement comme au début\b|我说错了|还是按原来的"
)
_MAY_CORRECT = re.compile(
    r"\b(?:sorry|oops|wait|no|correction|my bad)\b[^.?!]{0,20}\b(?:i (?:meant|mean)|wrong (?:number|id|order|date|name"
    r"|code|one)|typo|mix(?:ed)? (?:it|them|that)? ?up|got (?:it|that) wrong)|\bmy mistake\b|\bi misread\b",
    re.IGNORECASE,
)
_CORRECTS_IDENTITY = re.compile(
    r"typo|mis-?typed|mis-?spel|mistake|my bad|wrong|not me\b|isn['’]t me|not my (?:name|account|profile)|i meant"
    r"|correct (?:one|email|e-mail|id|number|zip|spelling)|should (?:be|have been)|sorry|spelled|spelt",
    re.IGNORECASE,
)
_WORKS = re.compile(r"\b(it works|that works|works (now|again)|fixed it|it is (working|solved|fixed))\b", re.IGNORECASE)
_FAILS = re.compile(r"\b(still|does not work|did not help|not working|doesn't work|didn't help)\b", re.IGNORECASE)
_DID = re.compile(
    r"\bi(?:'ve| have)?(?: just| now| also| already)* (turned|toggled|switched|restarted|rebooted|reset|disabled"
    r"|enabled"
    r"|removed|reseated|re-?inserted|granted|disconnected|ran|checked|set|put) (?P<what>[^.,;!?]{2,60})"
    r"|\b(?:the|my) (status bar|speed test|apn|network mode|sim(?: card)?|vpn|wi-?fi|data saver|phone|screen) "
    r"(?:now |still |currently )*(says|shows|displays|reads)\b"
    r"|\b(?:the )?(speed test) (?:result )?(?:is|was|came)\b",
    re.IGNORECASE,
)
_BEFORE_THE_CALL = re.compile(
    r"\b(before|earlier|yesterday|already tried|this morning|last (night|week|time))\b", re.IGNORECASE
)


def cannot_say(text: str) -> bool:
    """Whether a user does not know, or cannot give, what was asked for."""
    return bool(_CANNOT_SAY.search(text))


def asks_back(text: str) -> bool:
    """Whether a user asks what something that was asked of it is good for."""
    return bool(_ASKS_BACK.search(text))


def corrects(text: str | None) -> bool:
    """True if a user says that they got wrong what they told before, or return to what they said first: what follows
    replaces what was told, whatever was asked."""
    return bool(_CORRECTS.search(normal_text(text)))


def may_correct(text: str) -> bool:
    """Whether a user may be correcting something that it told, in any of the words that people have for it."""
    return corrects(text) or bool(_MAY_CORRECT.search(text))


def may_correct_identity(text: str) -> bool:
    """Whether a user who said who they are may be saying that this was wrong."""
    return bool(_CORRECTS_IDENTITY.search(text))


def tells_works(text: str) -> bool | None:
    """Whether a user says that it works (again), or that it does not; None if neither."""
    return False if _FAILS.search(text) else True if _WORKS.search(text) else None


def reported_deed(text: str) -> str | None:
    """What a user says that it has just done to, or seen on, a device of its own; None if it says nothing of the kind,
    or speaks of what was before the call."""
    match = _DID.search(text)
    return None if match is None or _BEFORE_THE_CALL.search(text) else match[0]


_DEED_VERBS = (
    "turned|toggled|switched|restarted|rebooted|reset|disabled|enabled|activated|deactivated|removed|reseated"
    "|re-?inserted|granted|gave|allowed|disconnected|connected|set|put|changed|made|paid|cleared|updated|installed"
    "|uninstalled|opened|closed|locked|unlocked|started|stopped|sent|saved|deleted"
)
_CLAIMS = re.compile(
    rf"(?<!\w)(?P<unless>(?:if|when|whenever|once|until|unless|before|should|had|where) )?"
    rf"i(?:['’]ve| have)?(?: just| now| also| already| then)* (?P<verb>{_DEED_VERBS})\b(?P<rest>[^.;!?\n]{{0,120}})",
    re.IGNORECASE,
)
_NEXT_CLAIM = re.compile(rf"^\s*(?:then |also |i(?:['’]ve| have)? )*(?P<verb>{_DEED_VERBS})\b", re.IGNORECASE)
_CLAIMS_DONE = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|all ?right|alright|sure|yes|yep|right|great)\b[,.! ]*)?"
    r"(?:it['’]?s |it is |that['’]?s |that is |all )?done\b(?! (?:with|for|by))"
    r"|\bi(?:['’]ve| have)?(?: just| now| already)* (?:did|done) (?:it|that|this|so|both|as you (?:said|asked)"
    r"|what you (?:said|asked)|all of (?:it|that|them))\b"
    rf"|\bi(?:['’]ve| have)?(?: just| now| already)* (?:{_DEED_VERBS}) (?:it|that|this|them|both)\b"
    r"|\b(?:it|that)(?:['’]?s| is) (?:now (?:back )?(?:off|on|disabled|enabled|reset|restarted|connected|disconnected)"
    r"|(?:back )?(?:off|on|disabled|enabled|reset|restarted|connected|disconnected) now)\b",
    re.IGNORECASE,
)


def claimed_deeds(text: str) -> list[tuple[str, str]]:
    """What a user says that it has done, each as the verb and the words behind it; not what was before the call, nor
    what it would do. "I reset the APN and restarted my phone" are two."""
    out = []
    for match in _CLAIMS.finditer(text):
        if match["unless"] or _BEFORE_THE_CALL.search(match[0]) or text[match.end() : match.end() + 1] == "?":
            continue
        verb = match["verb"]
        for part in re.split(r",| and | but ", match["rest"]):
            further = _NEXT_CLAIM.match(part)
            verb, clause = (verb, part) if further is None else (further["verb"], part[further.end() :])
            out.append((verb.lower(), clause.strip()))
    return out


def claims_done(text: str) -> str | None:
    """The words with which a user says that what it was asked to do is done, without saying what that is; None if it
    does not, or speaks of what was before the call."""
    match = _CLAIMS_DONE.search(text)
    return None if match is None or _BEFORE_THE_CALL.search(text) else match[0].strip()


# What gives away that a user is simulated.

_SPEAKS_OF_ITS_PART = re.compile(
    r"\bas an? (ai|artificial intelligence|language model|llm)\b|\b(i'?m|i am) (just )?an? (ai|llm|language model)\b"
    r"|\b(large )?language model\b|\buser simulat|\bsimulated (user|customer)\b|\bsystem prompt\b"
    r"|\b(i'?m|i am) (only )?(simulating|role-?playing|playing the (role|part))\b"
    r"|\b(task|scenario|simulation|user) (instructions?|guidelines?)\b|\bmy instructions?\b|\bmy scenario\b"
    r"|\binstructions? (i|that i|i'?ve) (was|were|have been|been|am) given\b|\b(i was|i'?ve been|i am"
    r"|i'?m) instructed\b"
    r"|\b(the|this|my) (scenario|instructions?|prompt) (says?|states?|tells?|asks?|requires?|specif|mention|do(es)?n'?t"
    r"|do(es)? not|only says?|include|provide)"
    r"|\b(in|by|from|to|per) (the|my|this) (scenario|prompt)\b(?! (where|when|that|if|of|above|below))"
    r"|\baccording to (the|my) (scenario|instructions?)\b|\bper (the|my) instructions?\b"
    r"|\bn(ot|'t) (\w+ )?(provided|mentioned|specified|included|given|available|stated) (in|by) (the|my|this) "
    r"(scenario|instructions?|context|prompt)\b"
    r"|^\s*(reason for call|known info|unknown info|task instructions|persona|thought|user response)\s*:|</?think>",
    re.IGNORECASE | re.MULTILINE,
)
_NARRATES = re.compile(
    r"\bthe (user|customer) (wants?|would like|should|says?|is asking|asks?|needs?)\b", re.IGNORECASE
)
_WRITES_A_CALL = re.compile(
    r"<tool_call>|<function[_=]|\bfunction_call\b|```(json|python|tool)?\s*[{\[]"
    r'|\{\s*"(name|tool|tool_name|function|action|arguments|parameters)"\s*:|\b[a-z]+(_[a-z]+)+\([^)]*\)',
)
_SPEAKS_AS_AGENT = re.compile(
    r"\bhow (can|may) i (help|assist|be of)\b|\banything else (that )?i can (help|assist|do for) (you|with)\b"
    r"|\b(i have|i've|i) (now |just |successfully |already )*(processed|cancell?ed|updated|modified|refunded|exchanged"
    r"|booked|issued|scheduled|initiated|located|retrieved|verified|reactivated|refuelled|refueled) your\b"
    r"|\byour (order|reservation|refund|return|exchange|booking|flight|account|request|payment|certificate|line) "
    r"(\S+ ){0,3}?(has|have) been (successfully )?(process|cancel|updat|modif|refund|exchang|book|issu|chang|submit"
    r"|reactiv)"
    r"|\bthank(s| you) for (contacting|calling|reaching out to|choosing) (us|our|customer)\b"
    r"|\b(could|can|may) you (please )?(provide|give|share|confirm) (me )?(with )?your\b(?! (manager|supervisor"
    r"|name|phone))"
    r"|\b(i'?ll|i will|i can|let me) (now )?(transfer|connect) you\b|\bi'?m here to (help|assist)\b"
    r"|\b(feel free|don'?t hesitate) to (reach out|contact us|ask|let me know)\b"
    r"|\bto (help|assist) you (further|better|with (this|that|your))\b"
    r"|\bas (your|a|the) (customer (service|support)|support) (agent|representative|assistant)\b",
    re.IGNORECASE,
)
_WRITES_AGENTS_PART = re.compile(
    r"^\s*\**(agent|assistant|customer service( (agent|representative))?|representative|support( agent)?)\**\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_PLACEHOLDER = re.compile(
    r"\[(your|my|insert|customer'?s?|user'?s?|order|reservation|name|email|phone|zip|first|last"
    r"|account)\b[^\]\n]{0,40}\]"
    r"|<(insert|your|my) [^>\n]{1,40}>|\bX{3,}[- ]?X{2,}",
    re.IGNORECASE,
)


def talk_of_its_part(text: str) -> str | None:
    """The words with which a user speaks of its instructions, or of being a model; None if it does not."""
    return _piece(_SPEAKS_OF_ITS_PART, text)


def narration(text: str) -> str | None:
    """The words with which it speaks of the user as of somebody else."""
    return _piece(_NARRATES, text)


def call_as_text(text: str) -> str | None:
    """A tool call that is written as text, or how it begins."""
    return _piece(_WRITES_A_CALL, text)


def talk_as_agent(text: str) -> str | None:
    """The words with which it speaks as the agent would."""
    return _piece(_SPEAKS_AS_AGENT, text)


def agents_part(text: str) -> str | None:
    """The heading under which it writes the agent's part."""
    return _piece(_WRITES_AGENTS_PART, text)


def placeholder(text: str) -> str | None:
    """A placeholder that nobody filled in."""
    return _piece(_PLACEHOLDER, text)


def _piece(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return None if match is None else match[0]
