"""By which words the clauses of a reply are known for what they do (language/replies.py).

Each entry is a regular expression for whole words, in lower case. ``^`` is the clause's beginning, with or without its
leads ("oh", "well", "and", "yes"), ``$`` its end without marks. Names in braces stand for words that several entries
share (``_NAMES``). Nothing may repeat without a bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAMES = {
    "{would}": r"(?:{i}(?:'d| would)(?: (?:really|just|also|first))?(?: (?:like|love|want|need|prefer))?(?: to)?"
    r"(?: first)?|{i}(?:'ll| will|'m going to| have to| need to| want to| must| should| ought to| had better)"
    r"(?: (?:just|first|also))?|let me(?: (?:just|first|quickly))?|let's(?: first)?|^)",
    "{i}": r"(?:i|we)",
    "{it}": r"(?:it|that|this|so|them|those|these|both|all)",
    "{that}": r"(?:that|this|it|which)",
    "{is}": r"(?:it's|its|it is|this is|that's|that is|that was)",
    "{who}": r"(?:i|you|he|she|they|we|it|it's|the|my|that's|there|there's|your|you've|i've)",
    "{kin}": r"(?:wife|husband|partner|son|daughter|mother|mom|mum|father|dad|boss|sister|brother|family|parents?)",
    "{while}": r"(?:moments?|minutes?|seconds?|secs?|days?|hours?|while|time|{day})"
    r"(?! (?!to |please|before|for |or )\w)",
    "{day}": r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight)",
    "{good}": r"(?:great|wonderful|lovely|perfect|good|fine|ideal|appreciated)",
    "{well}": r"(?:just|perfectly|very well|well|great|fine|nicely)",
    "{leave}": r"(?:consent|confirmation|permission|approval|authori[sz]ation|blessing|go-ahead|ok|yes)",
    "{told_me}": r"(?:explaining|telling|clarifying|confirming|checking|letting me know"
    r"|the (?:information|info|update|explanation|details|clarification|heads))",
    "{did}": r"(?:have|had|got|did|was|see|saw|know|noticed|remember|recall|understand|received|called|placed|ordered"
    r"|spoke|heard|read|bought|live|moved|lost)",
    "{deed}": r"(?:do|cancel|proceed|go|process|change|modify|update|return|exchange|submit|make|touch|book|charge|send"
    r"|close|anything)",
    "{weigh}": r"(?:think|sleep on|ask|check|talk|compare|discuss|consult|look|measure|decide|speak|run (?:it|this)|see"
    r"|get back)(?! (?:so|you|that is|that's|that was|this is|it is|it's))",
    "{not}": r"(?:don't|do not|won't|will not|can't|cannot|wouldn't|would not|didn't|did not|never|refuse to)",
    "{grant}": r"(?:want (?:that|this|you|to)|agree|accept|approve|authori[sz]e|confirm|consent|wish to|let|allow|said"
    r"|agreed)",
    "{wish}": r"(?:want|like|wish|do|say|pay)",
    "{is_not}": r"(?:not|isn't|wrong|incorrect|never|doesn't|won't|wouldn't|can't|cannot)"
    r"(?! (?:matter|bother|a problem|be needed|needed))",
    "{is_done}": r"(?: is|'s|'re| are|'ve| have| has)?(?: been)? (?:done|in|through|finished|cancell?ed|booked|sorted"
    r"|settled|ready|set|over|at it)",
    "{thing}": r"(?:thing|question|request|orders?|favou?r|issue|problem|item|booking|reservation|appointment|flight"
    r"|accounts?|line|card|bag|book|fees|shoes)",
}  # fmt: skip


def whole_words(*patterns: str) -> re.Pattern[str]:
    """One expression for all of these, each of whole words."""
    joined = "|".join(patterns)
    for name, stands_for in _NAMES.items():  # a name's own names stand behind it
        joined = joined.replace(name, stands_for)
    return re.compile(rf"(?<![\w'])(?:{joined})(?![\w'])")


LEADS = (
    "actually", "ah", "alright", "also", "and", "but", "eh", "er", "fine", "good", "great", "hi", "hello", "hey",
    "hm+", "just", "kindly", "lol", "no", "now", "oo*h+", "ok", "okay", "perfect", "please", "right", "so", "sorry",
    "sure", "thank you(?: so much| very much)?", "thanks(?: a lot)?", "then", "though", "although", "uh+", "um+",
    "well", "yeah", "yep", "yes", "yup", "yay", "wow", "honestly", "obviously",
)  # fmt: skip
"""What may stand before what a clause says."""

AGREES: Sequence[str] = (
    "go (?:right |on )?ahead",
    "(?:you bet|you got it|deal|it's a deal|sold|done deal|sign me up|count me in)$",
    "(?:bring it on|for sure|roger|amen|totally)$",
    "green light", "thumbs up", "make it happen", "finali[sz]e", "on board",
    "happy to (?:proceed|go|confirm|agree|accept|do)", "(?:answer|vote) is (?:a )?(?:yes|definite yes)",
    "consider (?:it (?:approved|agreed|confirmed)|this)",
    "i(?:'d| would) be (?:grateful|thankful|happy|glad|delighted)(?: if you (?:did|do|would|could))?$",
    "no (?:objections?|complaints|issues?)(?: (?:here|at all|from me|to that|with that))?",
    "nothing against (?:it|that)", "(?:don't|do not|wouldn't) mind(?: at all)?$", "(?:both|all of (?:it|them)) please",
    "do both", "(?:what are you|what you're) waiting for", "👍", "i'm sold", "i'm ready", "suits me", "go for it",
    "go on", "carry on", "by all means", "be my guest", "hit it", "make it so",
    "{i} (?:do |hereby |fully |can )?(?:agree|accept|approve|authori[sz]e|confirm|consent|say yes)",
    "(?<!not )(?:agreed|accepted|approved|authori[sz]ed|confirmed)", "^confirm(?: {it})?$",
    "(?<!i can )(?<!i'll )(?<!i will )do {it}", "please do", "please process", "proceed", "get (?:it|that|this) done",
    "let's (?:do|go)", "i'm in$", "feel free", "make (?:the|that|this|those|these) changes?",
    "^(?:please |do |you (?:can|may) )?continue", "you (?:may|can|should)$",
    "you (?:may|can|have to|should) (?:proceed|go|do)",
    "{i}(?:'d| would)(?: really| very much)? (?:like|love|appreciate|want) {it}(?: done| please| very much)?$",
    "i'll take (?:it|that)", "(?:{that}|^)(?:'ll| will| would)? ?(?:works?|do|suits?)(?: {well})?(?: for)? (?:me|us)",
    "(?:that|this|it)(?:'ll| will) (?:do|work)(?: nicely| fine)?$", r"(?:that|this|it) works(?: \w+)?$",
    "{that}(?:'d| would| will|'ll) be (?:just |really |so |absolutely )?{good}$",
    r"(?:sounds?|looks?) (?:\w+ )?(?:good|great|perfect|fine|lovely|wonderful|right|like a plan)", "all good",
    "(?:fine|good|ok|okay|alright|all right|happy|cool) (?:with|by) (?:me|us|that|it|this)",
    "you(?:'ve| have)(?: got)? my (?:full |explicit )?{leave}",
    "(?:is|are) (?:just |absolutely |more than )?(?:perfect|fine|great|good|okay|ok|alright|all right|lovely|ideal)$",
    "is a (?:go|yes)", "it's a yes", "exactly what {i}(?:'d| want| need| would| had)",
    "that'?s? (?:is )?what {i} want", "(?:yes|yeah|yep|sure|ok|okay|fine) please", "^if you (?:would|could|please)$",
    "nothing wrong with that", "{i} insist",
)  # fmt: skip
"""Says yes in words that mean nothing else."""

YES: Sequence[str] = (
    "yes", "yess+", "yeah", "yep", "yup", "ya", "yah", "aye", "absolutely", "affirmative", "certainly", "definitely",
    "of course", "exactly",
)  # fmt: skip
FIRST_YES: Sequence[str] = (
    "y", "ok", "okay", "sure", "sure thing", "alright", "fine", "great", "perfect", "very sure", "all right$", "i do$",
    "it is$", "it does$", "i am$", "(?:wonderful|excellent|lovely|brilliant)$",
)  # fmt: skip
"""These say yes at a clause's beginning."""
LAST_YES: Sequence[str] = (
    "correct$", "(?<!all )right$", "good$", "okay$", "ok$", "fine$", "^confirm$",
)  # fmt: skip
"""And these at its end: "that is correct", but not "correct the zip"."""

SPEAKS: Sequence[str] = (
    "i(?:'m| am) (?:still )?(?:here|back|listening)", "^(?:still )?(?:here|speaking)",
    "^(?:this is|it's|it is) (?:me|he|she)", "^hello",
    "^my (?:new |old |full |first |last )?(?:name|e-?mail|address|number|zip|plate|phone|id|birthday|account)",
    "(?:name|number|address|e-?mail|code|birthday|zip) is", "noted", "good to know",
    r"^this is (?!fine|great|perfect|good|correct|right|ok|okay|it|what|exactly|all|very|so)\w+$",
    "thank(?:s| you)(?: so much| very much)? for {told_me}", "take your time",
)  # fmt: skip
"""Says something that a yes before it belongs to, in whichever sentence: "Yes. I am still here."."""
DIGRESSES: Sequence[str] = (
    "i(?:'m| am) (?:okay|ok)", "{is} (?:him|her|mine|ours|my|our|his|the (?:one|same|name|address|number|email))",
    "i'm the", "is the one", "provide", "love your",
    r"(?:it's|that's|it is|that is) the \w+ (?:\w+ )?(?:i|we|that|one)", "that one (?:was|is|came)",
    "^it(?:'s been| has been| took| came| arrived)", "^i {did}",
    "^i can (?:do|be|provide|give|confirm|hear|see|tell|imagine)", "^got (?:it|your|the|that)",
    "^i(?:'ve| have) (?:got|had|been|received|read|seen)", "^(?:we|they|he|she) (?:have|had|did|was|were|got|are)",
    "^(?:we're|they're|he's|she's|i'm) (?:at|in|on|the|from|calling)", "^my order",
)  # fmt: skip
"""The same, but only in the sentence of the yes: "Yes, it is the one with the stripe"."""

WITHDRAWS: Sequence[str] = (
    "(?<!can't )(?<!cannot )(?<!to )wait", "(?<!a )hold (?:on|off|your horses|that thought)", "hang on", "never ?mind",
    "forget (?:it|that|about|the|my)", "scratch that", "you know what", "chang(?:e|ed|ing) my mind",
    "on (?:second thoughts?|reflection)", "take (?:it|that|this|all of that) back", "no sorry", "sorry no", "mean no",
    "not (?:yet|now|today|so fast|just yet|right now|at the moment|until|till)", "before (?:we|you|i)", "don't$",
    "or (?:maybe )?(?:no|not)", "^stop(?! by)", "please stop", "stop (?:it|that|this|right)",
    r"leave (?:it|things|everything|the \w+|my \w+)(?: all)? (?:as|alone|be)",
    r"^(?:do not|don't)(?: \w+){0,2}? ?{deed}", "rather (?:not|keep|stay|wait|you didn't)", "{i}'d rather", "postpone",
    "pressed the wrong",
)  # fmt: skip
"""Puts it off or takes it back, wherever in a reply."""

HESITATES: Sequence[str] = (
    "{would} {weigh}",
    "(?:give me|i need|need|allow me|gimme)(?: just)?"
    "(?: (?:a|an|one|another|some|until|till|more|few|couple of|little|bit)){0,3} {while}",
    "bear with me", "(?:get|come) back to you", "(?:some|my|having) doubts", "second thoughts", "i'll let you know",
    "i will let you know", "(?:can't|cannot) decide", "part of me", "another day", "call back", "could (?:work|be)",
    "still (?:deciding|thinking|considering|unsure)", "considering", "mull", "weigh", "tentatively", "haven't decided",
    "not decided", "make up my mind", "ask me again", "thinking (?:about|it)",
    r"need (?:my|his|her|their) (?:\w+ )?(?:blessing|ok|approval)", "up to my {kin}",
    "(?:ask|check with|consult|talk to|speak to|speak with) my {kin}",
)  # fmt: skip
"""Has not made up its mind."""

DOUBTS: Sequence[str] = (
    "undecided", "on the fence", "torn", "hesitant", "reluctant", "inclined", "tempt(?:ed|ing)",
    "not (?:so |quite |really |too |entirely |completely |100% )?(?:sure|certain|convinced)", "unsure", "uncertain",
    "likelihood", "in (?:principle|theory)", "i guess", "i suppose", "leaning", "don't know", "hard to say",
    "we'll see",
)  # fmt: skip
"""Is not sure."""

WEAKENS: Sequence[str] = (
    "given (?:the|that)", "maybe", "perhaps", "probably", "possibly", "presumably", "later", "i might",
    "{that}(?: is|'s| does| sounds)? {is_not}", "too (?:expensive|much|high|pricey|steep|late|early|long)",
    "not worth", "(?<!nothing )wrong", "ridiculous", "outrageous", "absurd",
    "(?:once|as soon as|after|until|till|whenever) {who}", "when (?:the|my|your|it|it's|that|he|she|there's)",
    "the day (?:you|i|the|my)", "you(?:'d| would|'ll| will) have to", "first$", "otherwise", "pending", "without",
    "half", "for now", "the (?:rest|other|others|second|latter|former)", "need the", "can (?:pay|keep|stay)",
    "by myself", "myself", "(?:some|most|a few) of", "as for", "but", "rather", "different", "nearly", "almost",
    "prefer", "slight", "(?:was|were) after", "not in", "better (?:if|on)", "more like",
    r"{i} (?:really |certainly |definitely |just |still )?{not}(?: \w+)? {wish}",
)  # fmt: skip
"""May take from a yes that it stands beside, and tells a story elsewhere: "It never worked without the cable"."""

MOCKS: Sequence[str] = (
    "what a joke$", "dreamed of", "pigs? (?:can )?fl(?:y|ies)", "kidding", "joking", "how generous", "why don't you",
    "keep my money", "in (?:your|my) dreams", "hell freezes", "just what i(?: always)? (?:needed|wanted|dreamed)",
    "because i (?:just )?love", "yeah right", "^(?:as if)$",
)  # fmt: skip
"""A yes that is not meant."""

REFUSES: Sequence[str] = (
    "no$", "not$", "(?:isn't|aren't|doesn't|won't)$", "thanks but no", "not (?:happening|likely)", "unlikely",
    "^hardly", "fat chance", "nothing doing", "dream on", "you wish", "far from it", "no to",
    "no (?:thanks|thank you|way(?! around)|chance|deal|i|don't|leave|it's|that's|that is|from|please)",
    "(?:god|hell|hard|big|firm|definite|a|say|said) no", "^never", "^neither",
    "^not(?! (?:a |an |only|at all|that |to ))", "refuse", "decline", "(?<!don't )(?<!not )disagree", "reject",
    "^(?:don't|do not)", "^i'm good", "i(?:'ll| will| would|'d) pass",
    r"{i} (?:really |certainly |definitely |just |still )?{not}(?: \w+)? {grant}",
    "not (?:sound|ok|okay|right|correct|fine|good|acceptable|happy|interested(?! in)|what|going|paying|doing)",
    "(?:that|this)(?: is|'s| does| sounds)? {is_not}", "out of the question", "let's (?:not|leave)",
    "i(?:'ll| will) (?:keep|stick|stay|leave|hang)", "(?:against|by no|under no) (?:it|means|circumstances)",
    "answer is no", "(?:certainly|absolutely|definitely|of course|probably|rather|prefer|please) not", "not a chance",
    "queen of", "don't you dare", "dare you", "don't bother(?! me)", "^isn't", "incorrect", "unacceptable", "rip-?off",
    "not (?:him|her|you)",
)  # fmt: skip
"""Says no."""

CONDITIONS: Sequence[str] = (
    "if", "(?:so|as) long as", "provid(?:ed|ing)(?! by| me| you with| us)", "assuming", "unless",
    "on (?:the |one )?(?:condition|understanding|proviso)", "conditional(?:ly)?", "in case", "in the event",
    "the (?:moment|minute|second|instant) (?:the|you|i|it|that|they|my|your)",
    "when (?:i|you|we|they)(?:'ve| have| get| know| see| confirm| can| promise| hear)", "granted", "supposing",
    "were you to", "should you", "barring", "or else", "in that case", "subject to", "depend(?:s|ing)", "caveat",
    "contingent", "then (?:yes|yeah|ok|okay|sure|fine|go|please|it's|you|do|we|i'm|i|book|proceed|the|gets?)",
    "(?:a yes|a deal) (?:from|with)", "got (?:yourself )?a (?:yes|deal)", "match the", "waive",
    "first (?:i|you|we|explain|check|tell|let)", "for free", "(?:i|we) (?:assume|presume|trust)", "not before",
    r"(?<!at )(?<!for )once (?!more|again|in|a|upon|\w+ing)",
    "(?:has|have|needs?|want (?:it|this|that)) to be (?:free|refunded|waived|included)",
    "must (?:not|be|come|have|get|include)", "given that you", "in exchange for", "in return for",
)  # fmt: skip
"""Agrees if something is so."""

ASKS: Sequence[str] = (
    "explain", "(?:tell|remind|inform|show) me", "walk me through", "do tell", "clarify", "elaborate", "i take it",
    "refresh my memory", "go over", "may i ask", "mind telling", "please advise",
    "(?:more|the|further|some) (?:details?|information|info)", "in writing", "unclear", "not clear",
    "(?:don't|do not) (?:understand|get)", "do you mean", "out of curiosity",
    r"^(?:and|or) (?:the|my|how|when|what|if) \w+$", "^please confirm (?:the|that|if|whether|what|when|how|which|my)",
    "^(?:so )?how",
    "let me know(?! (?:when|once|if|as soon as) (?:{that}|everything|you|anything)"
    "(?:'s| is|'re| are| has| have| need| goes| comes)(?! there))",
    "(?:like|love|want|need|curious|interested|have) to (?:first )?(?:know|hear|understand|learn|find out)",
    "wonder(?:ing)?", "curious",
    r"(?:a|an|some|one|another|few|couple of|my|more|quick) (?:\w+ )?(?:questions?|concerns?)",
    "question (?:about|on|regarding)", "(?:make|be) (?:sure|clear)",
    "(?:haven't|have not|didn't|did not|never) (?:said|told|tell|say|mentioned|mention|explained|explain)",
    "something to say", "there's a (?:penalty|fee|charge|catch)", "what (?:that|this|it) (?:means|costs|is)",
    "^how (?:much|many|long|soon|do|does|will|would|far|is|are|about|come|big)",
    "^what(?:'s| is| are| will| would| about| happens| does| do| if| time| fee| day| exactly)",
    "^when(?:'s| will| do| does| is| would| can| exactly)", "^where(?:'s| is| do| does| will| would| can)",
    "^which (?!is|was|i|he|she|they|we|would|works|sounds|suits)", "^(?:who|whose|why)",
    "^will (?:i|it|that|this|there|my|the|you|they)", "^would (?:i|it|that|this|there|the)", "^do (?:i|you|we|they)",
    "^does", "^is (?:it|that|this|there|the|my)", "^are (?:there|they|the|you|these)", "^am i",
    "^(?:can|could|may) (?:i|we)", "^did (?:you|i|it)", "or (?:what|no|not)$", "i'm listening",
    "how (?:much|long|far|soon) (?:it|that|this|will|would|is)",
)  # fmt: skip
"""Wants to know something."""

LIMITS: Sequence[str] = (
    "(?<!not )(?<!the )(?<!i )(?<!it's )(?<!i'm )(?<!am )"
    "only(?! (?:because|one more|(?:those|these|that|this|it|them)$))",
    "(?:just|not) (?:the|my|for|one|mine|half|part|this|him|her|me|{day})", "keep (?:the|my|that one|it|them)",
    "leave (?:the|my|out)", "first of (?:those|these|them|the two)", "another (?:story|matter)", r"up to \$? ?\d+",
    "except", "apart from", "other than", "part of", "skip", "omit", "not both", "minus", "like to (?:stay|keep)",
    "excluding", "all but", "save for", "not (?:hers|his|theirs|ours)", "not all", "one at a time",
    "(?:yes|ok|okay|fine|agree|agreed|sure) (?:to|on|for|about|with) (?:the )?first",
    "^(?:the )?first (?:one|part|of)", "one of (?:them|those|these|the two)",
    r"\w+ (?:yes|sure|ok)(?: \w+){0,3} (?:no|not)", "my own(?: one)?", "no need for",
)  # fmt: skip
"""Means a part of what was proposed."""

CHANGES: Sequence[str] = (
    "actually", "instead", "however", "^(?:please |just )?make (?:it|that|them)(?! (?:so|quick|snappy|happen))",
    "correction", "should (?:be|say|come|go)", "(?:supposed|meant) to be", "{i} (?:meant|asked|wanted)",
    "(?:tweak|adjustment|amendment)s?", "small change",
    "(?:the|an?) (?:later|earlier|cheaper|bigger|smaller|other) (?:one|time|date|day)",
    "a (?:day|week|month) (?:later|earlier)", "push it", "should read", "make that", "let's say",
    "(?:that's|it's|that is|it is) (?:my |the )?(?:old|wrong|previous|former)", "use my", "i said", "misspoke",
    "mistyped", "made a mistake", "(?:use|on|to|with) my other", "not that", "suits? me better", "suit me better",
    "(?:can|could) we", r"not (?!a |an |that |to |only |at |any)(?:in )?[\w-]+$",
    "(?:use|put|charge|send|change|switch|move|set) (?:it|that|them) (?:to|at|in|from|into|onto)",
    "(?:put|charge) (?:it|that|them) on", "just (?:from|on|at|in|with|make|change|use|write|put)",
    "from (?:the )?next", r"write \w+ with", r"one (?:\w+ )?(?:correction|change)", "(?:an|the|something) earlier",
    "typo", "misspelled", r"\w+ with an? \w",
)  # fmt: skip
"""Wants it otherwise."""

FURTHER: Sequence[str] = (
    "also", "by the way", "separate(?:ly)?", "additionally", "in addition", "besides that", "moreover", "plus",
    "unrelated", "next (?:up|thing|question|request|order|one is)",
    "one more (?:thing|question|request|favou?r|order)", "one last (?:thing|question)", "only one more",
    "another {thing}", "something else", "anything else", "(?:any|my|our|the) other (?:{thing}|one i)", "other order",
    "after that", "^afterwards?", "(?:once|when|as soon as) (?:it|that|this|this one|mine|you|we){is_done}",
    "when you're done", "while (?:you're|you are|i have you|i've got you|we're|we are|i'm)",
    "then {i}(?:'d| would|'ll| want| need| also)", "^now (?:since|for|about|on to|onto|the)", "^second(?:ly)?$",
    "not (?:done|everything|all)", "don't stop there", "while at it", "what (?:i'd|i would) like (?:to know )?next",
    "(?:done )?now (?:the )?(?:second|next|other) (?:one|order)?", "my {kin}(?:'s)? (?:needs?|too|as well)",
    "on top of that", "my next", "back to my",
)  # fmt: skip
"""Begins another thing."""
FURTHER_WISH: Sequence[str] = (
    r"(?:can|could|would|will) (?:you|i)(?: \w+){1,12} (?:too|as well)",
    r"{i}(?:'d| would)? (?:like|want|need)(?: \w+){1,12} (?:too|as well)", "but also", "(?<!do )i need a",
    "i'd (?:also )?like to (?:add|order|book|return|cancel|ask)",
)  # fmt: skip

DEAL: Sequence[str] = (
    "cost", "costs", "price", "priced", "fees?", "charg(?:e|es|ed|ing)", "pay(?:ing|ment|s)?", "paid",
    "refund(?:s|ed|able)?", "money", "dollars?", "how (?:much|long|soon|many|far|fast|does|will|would|late|early)",
    "still", "same", "back", "penalt(?:y|ies)", "deductible", "cover(?:s|ed|age)?", "apply", "applies",
    "includ(?:e|es|ed|ing)", "free", "extra", "deadline", "valid", "credit(?:s|ed)?", "points", "miles", "number",
    "policy", "days?", "weeks?", "hours?", "time", "e-?mail", "confirmation", "receipt", "ship(?:s|ped|ping)?",
    "deliver(?:y|ed|s)?", "arrive", "get", "lose", "keep", "need", "happens?", "anything", "something", "sure",
    "discount", "insurance", "bill(?:ed|ing)?", "amount", "total", "tax(?:es)?", "safe", "secure", "mean", "means",
    "change", "right", "correct", "really", "must", "have to", "when will", "difference", "cheaper", "better", "offer",
    "option", "options", "waive", "today", "tomorrow", "now", "later", "first", "account", "order", "serious",
    "exactly", "my", "our", "be", "there",
)  # fmt: skip
"""By these a question is about what was proposed."""

HARMLESS: Sequence[str] = (
    "can't wait", "cannot wait", "can't thank you enough",
    "couldn't (?:be|agree|have asked for) (?:happier|better|more)", "no reason not to", "don't see why not",
    "can't (?:complain|argue|say no)(?: with that| to that)?", "not at all", "not bad", "no matter", "no wonder",
    "don't forget", "no strings attached", "no use for (?:it|that|them)", "no doubt", "no problem(?: at all)?",
    "no rush", "no worries", "not a problem", "no hurry", "nothing but", "won't be a problem", "right away",
    "right now", "why not", "but thank(?:s| you)", "instead of", "rather than", "no changes",
    r"don't worry(?: about (?:it|that|the \w+))?", "no longer need(?:ed|s)?", "not needed",
    "(?:and )?no,? (?:that's|that is|that was|that'll be|that would be) (?:all|it|everything|not (?:all|everything))",
    "(?:no,? )?nothing else(?: for now| today)?", "no other items", "no others", "no,? only", "no more items",
    "no (?:other |further |more )?questions", "(?:don't|do not) have any (?:other |more |further )?questions",
    "no ifs(?:,? (?:and )?no buts)?", "been great", "great help", "great day", "great evening", "great weekend",
    "no need to (?:hurry|rush|worry|wait)", "ready when you are", "not only", "(?:don't|do not) need anything else",
    "nothing wrong with (?:it|that)", "whenever you(?:'re| are) ready", "by the looks of it",
    "if you (?:would|could|can|please|like|want|don't mind|wouldn't mind|will)(?= *(?:[.,!?;]|please|$))",
    "appreciate it if you (?:could|can|would)",
    "if {is} (?:not )?(?:too much trouble|possible|okay with you|ok with you)",
    "if (?:it|that) isn't too much trouble", "if i (?:didn't|hadn't|weren't|wasn't)",
    "if i (?:remember|recall|may|might)(?: right| correctly| say so)?", r"if you're asking(?: me)?(?: \w+){0,4}",
)  # fmt: skip
"""Beside a yes these take nothing back; alone, they agree to nothing."""
