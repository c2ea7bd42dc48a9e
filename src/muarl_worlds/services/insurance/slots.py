"""What customers of the insurer must tell: who they are, and the details of each request."""

from __future__ import annotations

from muarl.domains.kit.declaration import Fact, Identity, RecordDescription, Slot, days, of, one_of, own, pattern, words

# fmt: off
# Wordings stand side by side, and rules below each other.

POLICIES = words(
    {"car": ["car insurance", "car policy"],
     "home": ["home insurance", "home policy"],
     "travel": ["travel insurance", "travel policy"],
     "pet": ["pet insurance", "pet policy"]},
)
CAUSES = words(
    {"collision": ["collision"], "theft": ["theft"], "hail": ["hail"],
     "broken windscreen": ["broken windscreen"],
     "burglary": ["burglary"],
     "water damage": ["water damage"],
     "fire": ["fire"], "storm": ["storm"],
     "lost luggage": ["lost luggage"],
     "cancelled trip": ["cancelled trip"],
     "medical emergency": ["medical emergency"],
     "surgery": ["surgery"], "poisoning": ["poisoning"]},
)
DOCUMENTS = words(
    {"police report": ["police report"],
     "repair estimate": ["repair estimate"],
     "photos": ["photos"], "receipts": ["receipts"],
     "medical report": ["medical report"]},
)
METHODS = words(
    {"bank transfer": ["bank transfer"], "check": ["check", "paper check"], "prepaid card": ["prepaid card"]},
)
APPEAL_REASONS = words(
    {"new evidence": ["there is new evidence", "I have new evidence"],
     "wrong amount": ["the amount is wrong", "the wrong amount was assumed"],
     "wrong cause": ["the cause is wrong", "the wrong cause was assumed"],
     "unfair": ["it is simply unfair", "I find it unfair"]},
    own=True,
)

IDENTITY = Identity(
    tool="identify_member", table="members", key="member_id",
    facts=(Fact("member_id", pattern(r"M-\d{6}"), tells="My member number is {member_id}.", noun="member number"),
           Fact("postcode", pattern(r"\d{5}"), tells="My postcode is {postcode}.", wrong=True)),
    ask=("May I have your member number and your postcode?",
         "Could you give me your member number and postcode, please?",
         "I need your member number and the postcode of your address first.",
         "What are your member number and postcode, please?"),
    retry=("I could not find a member with this number and postcode. Could you check both, please?",
           "There is nobody with that member number and postcode. Would you look at them again?"),
    say=("It's {member_id}, postcode {postcode}.",
         "My member number is {member_id} and I live in {postcode}.",
         "{member_id}, {postcode}.",
         "The number on my letter is {member_id}. The postcode is {postcode}.",
         "I am member {member_id}, in {postcode}."),
)

CLAIM = Slot(
    "claim", pattern(r"CL-\d{5}"),
    ask=["Which claim is it?", "What is the claim number?", "Which of your claims do you mean?"],
    phrase="claim {}",
    say=["It's claim {}.", "Claim {}.", "The number is {}."],
    draw=own("claims", "claim_id", mark="documents"),
    described=RecordDescription(
        kind=CAUSES, match="cause", id="claim_id", look="list_claims", records="claims",
        given={"member_id": "member_id"},
        phrase="my claim about the {}",
        say=["I don't have the number. It's the one about the {}.", "The claim about the {}.",
             "It is the one about the {}."],
        cue="(?:claim|one|it's|it is) about(?: the)?",
    ),
)
KIND = Slot(
    "kind", POLICIES,
    ask=["Which policy is it?", "Which of your policies do you mean?"],
    phrase="my {}",
    say=["My {}.", "The {}, please.", "It's the {}."],
    change="Sorry, I meant my {}.",
    draw=own("policies", "kind", key="policy_id", mark="covers"),
    noun=["policy", "policies", "insurance"],
)
CAUSE = Slot(
    "cause", CAUSES,
    ask=["What has happened?", "What was the cause of the loss?"],
    say=["It was {}.", "A case of {}.", "{}, I'm afraid."],
    change="Well, strictly speaking it was {}.", draw=of(lambda drawn: drawn.kind.covers),
    asked=r"what (?:has )?happened|\bcause\b|kind of (?:loss|damage)",
)
DATE = Slot(
    "date", "date",
    ask=["When did it happen?", "On which day did it happen?"],
    say=["On {}.", "It was {}.", "{}, I think."],
    change=["I just looked it up, it was {}.", "Sorry, I am wrong, that was on {}."],
    draw=days(-36, -1),
    asked="when (?:did|was)|(?:which|what) (?:day|date)[^.?]*(?:happen|loss)|date of (?:the )?loss",
)
AMOUNT = Slot(
    "amount", "money",
    ask=["How high is the damage?", "What amount do you claim?"],
    say=["About {}.", "{}.", "It comes to {}."],
    change=["Actually, the garage says {}.", "Let me correct that to {}."],
    draw=one_of(180, 240, 350, 420, 560, 780, 900, 1200, 1650, 2300, 4800, 7200, 12000),
    noun=["damage", "amount"],
)
DOCUMENT = Slot(
    "document", DOCUMENTS,
    ask=["Which document is it?", "What have you got for us?"],
    phrase="the {}",
    say=["The {}.", "I have the {}.", "It's the {}."],
    change=["Sorry, I see that it is the {} that I have.", "No wait, it is the {}."],
    noun=["document", "paper"],
)
REASON = Slot(
    "reason", APPEAL_REASONS,
    ask=["On what grounds: new evidence, a wrong amount, or a wrong cause?", "Why do you appeal?"],
    say=["Well, {}.", "{}.", "You see, {}."],
    change=["To be exact, {}.", "Let me put it in another way: {}."],
    draw=one_of(
        "new evidence", "wrong amount", "wrong cause", "new evidence", "wrong amount", "wrong cause", "unfair",
    ),
    noun=["grounds", "appeal", "reason"],
)
DAY = Slot(
    "day", "date",
    ask=["On which day should the inspector come?", "Which day would suit you?"],
    say=["On {}.", "{} would be fine.", "{}, please."],
    change=["Actually, {} is better.", "Could it be {} instead?"],
    draw=days(1, 25),
    noun=["day", "date", "inspector"],
)
TIME = Slot(
    "time", "time",
    ask=["At what time?", "Which time would you like?"],
    say=["At {}.", "{}, please.", "{} suits me."],
    change=["Hmm, rather at {}.", "Actually, {} would be better."],
    draw=one_of("08:30", "10:00", "11:30", "13:00", "14:30", "16:00"),
)
METHOD = Slot(
    "method", METHODS,
    ask=["How would you like to be paid: by bank transfer, check or prepaid card?",
         "Which way of payment would you like?"],
    say=["By {}.", "{}, please.", "Make it a {}."],
    change=["Actually, a {} is easier for me.", "Let me take a {} instead."],
    noun=["paid", "pay", "method"],
)
DEDUCTIBLE = Slot(
    "deductible", "money",
    ask=["What should the deductible be: $250, $500, $750 or $1,000?", "Which deductible would you like?"],
    say=["{}.", "{}, please.", "I was thinking of {}."],
    change=["Actually, {} is better.", "Let's rather have {}."],
    draw=one_of(250, 500, 750, 1000, 250, 500, 750, 1000, 100),
)
