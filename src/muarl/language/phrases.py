"""By which words the clauses of a reply are known for what they do (language/replies.py).

Each entry is a regular expression for whole words, in lower case. ``^`` is the clause's beginning, with or without its
leads ("oh", "well", "and", "yes"), ``$`` its end without marks. Names in braces stand for words that several entries
share (``_NAMES``). No group may repeat without a bound.
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
    "{that}": r"(?:that|this|it|which|those|these|the)",
    "{is}": r"(?:it's|its|it is|this is|that's|that is|that was)",
    "{who}": r"(?:i|you|he|she|they|we|it|it's|the|my|that's|there|there's|your|you've|i've)",
    "{kin}": r"(?:wife|husband|partner|son|daughter|mother|mom|mum|father|dad|boss|sister|brother|family|parents?)",
    "{while}": r"(?:moments?|minutes?|seconds?|secs?|days?|hours?|while|time|{day})"
    r"(?! (?!to |please|before|for |or )\w)",
    "{day}": r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight)",
    "{good}": r"(?:great|wonderful|lovely|perfect|good|fine|ideal|appreciated|ok|okay|alright|all right"
    r"|reasonable|fantastic|excellent|acceptable|brilliant)",
    "{mine}": r"(?:name|e-?mail|address|number|zip|phone|id|birthday|account|identity)",
    "{leave}": r"(?:consent|confirmation|permission|approval|authori[sz]ation|blessing|go-ahead|ok|yes)",
    "{told_me}": r"(?:explaining|telling|clarifying|confirming|checking|letting me know"
    r"|the (?:information|info|update|explanation|details|clarification|heads))",
    "{deed}": r"(?:do|cancel|proceed|go|process|change|modify|update|return|exchange|submit|make|touch|book|charge|send"
    r"|close|anything)",
    "{weigh}": r"(?:think|sleep on|ask|check|talk|compare|discuss|consult|look|measure|decide|speak|run (?:it|this)|see"
    r"|get back)(?! (?:so|you|that is|that's|that was|this is|it is|it's))",
    "{not}": r"(?:don't|do not|won't|will not|can't|cannot|wouldn't|would not|didn't|did not|never|refuse to)",
    "{grant}": r"(?:want (?:that|this|you|to)|wish to|let|allow|said|agreed|{grants})",
    "{grants}": r"(?:agree|accept|approve|authori[sz]e|confirm|consent|say yes)",
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
    "go (?:right |on )?ahead", "go for it", "go on", "^(?:just |do )?go$", "carry on", "proceed(?! to the)",
    "^(?:please |do |you (?:can|may) )?continue", "please (?:do|process)", "(?<!i can )(?<!i'll )(?<!i will )do {it}",
    "do both", "(?:both|all of (?:it|them)) please", "get {it} done", "let's (?:do|go)",
    "make (?:it|that) (?:so|happen)", "make {that} changes?", "finali[sz]e", "hit it", "feel free",
    "(?:everything|all|details)(?: \\w+){0,3} (?:right|correct|fine|good|perfect)$", "by all means",
    "(?:for sure|totally)$", "👍", "^(?:you bet|(?:it's a )?deal|sold|sign me up|count me in|roger|amen|works)$",
    "i'm (?:in|sold|ready|game|on board)$", "is a (?:go|yes)",
    "{i} (?:do |hereby |fully |can |gladly |happily )?{grants}(?! (?:that it|my (?:{mine})|that my|with you|how|why))",
    "^{grants}(?: {it})?$", "(?<!not )(?<!and )(?:agreed|accepted|approved|authori[sz]ed|confirmed)(?! (?:my|that))",
    "happy to(?! (?:help|wait|answer|give|provide|know|hear|see))",
    "(?:you(?:'ve|'ve got)|have) (?:my (?:\\w+ )?{leave}|it$)", "what you're waiting for",
    "you (?:may|can|should|are welcome to|'re welcome to)(?: (?:proceed|go|do)|$)",
    "{i}(?:'d| would| do|'ll| will) be (?:\\w+ )?(?:grateful|thankful|happy|glad|delighted)$", "^i would$",
    "{i}(?:'d| would|'ll| will| do)(?: really| very much| gladly| indeed)?(?: (?:like|love|appreciate|want|take) {it})?"
    "(?: done| please| very much| indeed)?$",
    "(?:is|are|be|'s|it's|its|that's|this is|sounds?|looks?|seems?) (?:(?!not )\\w+ )??(?:\\w+ )??{good}"
    "(?: (?:(?:for|with|by|to) (?:me|us)|to \\w+ it|now|then))?$",
    "(?<!i'm )(?<!i am )(?:{good}|happy|cool|comfortable) (?:with|by|for) (?:me|us|that|it|this)",
    "i(?:'m| am) (?:\\w+ )?(?:{good}|happy|cool|comfortable) with (?:that|it|this|the)",
    "(?:works?|suits?|fits|do)(?: \\w+)?(?: for)? (?:me|us)(?: \\w+)?(?: well| fine| nicely)?$",
    "{that}(?:'ll| will| would)? (?:works?|do|suits?|fits)(?: \\w+)?$", "(?:sounds?|looks?) like (?:a plan|just what)",
    "(?:exactly|that's|that is|this is|is) (?:\\w+ ){0,2}?(?:what|thing) {i}(?:'d| want| need| would| had| asked|'ve)",
    "no (?:objections?|complaints|issues?)", "nothing (?:against|wrong with) (?:it|that)",
    "(?:don't|do not|won't|wouldn't|can't) (?:mind|object|disagree|argue)(?: (?:at all|with that|to that)){0,2}$",
    "(?:yes|yeah|yep|sure|ok|okay|fine) please", "^if you (?:would|could|did|please)$",
    "^(?!go|stay|far|right)\\w+ away$",
)  # fmt: skip
"""Says yes in words that mean nothing else."""

YES: Sequence[str] = (
    "y+e+s+", "y+u+p+", "y+e+p+", "y+e+a+h*", "y+ah*", "aye", r"si(?! \w)", "absolutely", "affirmative", "certainly",
    "definitely", "of course", "exactly", "indeed",
)  # fmt: skip
FIRST_YES: Sequence[str] = (
    "y", "ok", "okay", "sure", "alright", "fine", "great", "perfect", "very sure", "all right$", "i (?:do|am)$",
    "it (?:is|does)$", "(?:wonderful|excellent|lovely|brilliant)$",
)  # fmt: skip
"""These say yes at a clause's beginning."""
LAST_YES: Sequence[str] = ("correct$", "(?<!all )right$", "good$", "okay$", "ok$", "fine$", "^confirm$")
"""And these at its end: "that is correct", but not "correct the zip"."""

SPEAKS: Sequence[str] = (
    "i(?:'m| am) (?:still )?(?:here|back|listening)", "^(?:still )?(?:here|speaking)",
    "^(?:this is|it's|it is) (?:me|he|she)", "^hello",
    "^my (?:new |old |full |first |last )?(?:name|e-?mail|address|number|zip|plate|phone|id|birthday|account)",
    "(?:name|number|address|e-?mail|code|birthday|zip) is", "{is} (?:my|mine|ours)",
    "you(?:'re| are) (?:right|correct)",
    "(?:is|was) (?:my|the) (?:\\w+ )?(?:name|number|address|e-?mail|code|birthday)", "noted", "good to know",
    r"^this is (?!fine|great|perfect|good|correct|right|ok|okay|it|what|exactly|all|very|so)\w+$",
    "thank(?:s| you)(?: so much| very much)? for {told_me}", "take your time",
)  # fmt: skip
"""Says something that a yes before it belongs to, in whichever sentence: "Yes. I am still here."."""
WITHDRAWS: Sequence[str] = (
    "(?<!can't )(?<!cannot )(?<!to )wait", "(?<!a )hold (?:on|off|your horses|that thought)", "hang on",
    "never ?mind(?! what)", "forget (?:it|that|about|the|my)", "scra(?:tch|p) that", "you know what",
    "chang(?:e|ed|ing) my mind", "on (?:second thoughts?|reflection)", "take (?:it|that|this|all of that) back",
    "mean no", "not (?:yet|now|today|so fast|just yet|right now|at the moment|until|till)",
    "before (?:we|you|i)(?! (?:hang up|go$|leave))", "don't$", "or (?:maybe )?(?:no|not)", "^stop(?! by)",
    "stop (?:it|that|this|right)", r"leave (?:it|things|everything|the \w+|my \w+)(?: all)? (?:as|alone|be)",
    r"^(?:do not|don't)(?: \w+){0,2}? ?{deed}", "rather (?:not|keep|stay|wait|you didn't)",
    "let me (?:just )?(?:change|correct|rephrase|restate|amend|revise|adjust|start over)",
)  # fmt: skip
"""Puts it off or takes it back, wherever in a reply."""

HESITATES: Sequence[str] = (
    "{would} {weigh}",
    "(?:give me|i need|need|allow me|gimme)(?: just)?"
    "(?: (?:a|an|one|another|some|until|till|more|few|couple of|little|bit)){0,3} {while}",
    "bear with me", "(?:get|come) back to you", "(?:some|my|having) doubts", "second thoughts", "i'll let you know",
    "i will let you know", "(?:can't|cannot) decide", "could (?:work|be)",
    "still (?:deciding|thinking|considering|unsure)", "considering", "haven't decided", "make up my mind",
    "ask me again", "thinking (?:about|it)", r"need (?:my|his|her|their) (?:\w+ )?(?:blessing|ok|approval)",
    "(?:ask|check with|consult|talk to|speak to|speak with) my {kin}",
)  # fmt: skip
"""Has not made up its mind."""

DOUBTS: Sequence[str] = (
    "undecided", "inclined", "tempt(?:ed|ing)",
    "not (?:so |quite |really |too |entirely |completely |100% )?(?:sure|certain|convinced)", "unsure", "uncertain",
    "likelihood", "in (?:principle|theory)", "i guess", "i suppose", "leaning", "don't know",
)  # fmt: skip
"""Is not sure."""

WEAKENS: Sequence[str] = (
    "given (?:the|that)", "maybe", "perhaps", "probably", "possibly", "later", "i might",
    "{that}(?: is|'s| does| sounds)? {is_not}", "too (?:expensive|much|high|pricey|steep|late|early|long)",
    "(?<!nothing )wrong", "(?:once|as soon as|after|until|till|whenever) {who}",
    "when (?:the|my|your|it|it's|that|he|she|there's)", "you(?:'d| would|'ll| will) have to", "first$", "otherwise",
    "without", "half", "for now", "the (?:rest|other|others|second|latter|former)", "need the",
    "(?:some|most|a few) of", "as for", "rather", "different", "nearly", "almost", "prefer", "(?:was|were) after",
)  # fmt: skip
"""May take from a yes that it stands beside, and tells a story elsewhere: "It never worked without the cable"."""

MOCKS: Sequence[str] = (
    "what a joke$", "dreamed of", "pigs? (?:can )?fl(?:y|ies)", "kidding", "why don't you", "keep my money",
    "in (?:your|my) dreams", "just what i(?: always)? (?:needed|wanted|dreamed)", "yeah right",
)  # fmt: skip
"""A yes that is not meant."""

REFUSES: Sequence[str] = (
    "no$", "not$", "thanks but no", "no to",
    "no (?:thanks|thank you|way(?! around)|chance|deal|i|don't|leave|it's|that's|that is|from|please)",
    "(?:god|hell|hard|big|firm|definite|a|say|said) no", "^never", "^neither",
    "^not(?! (?:a |an |only|at all|that |to ))", "refuse", "decline", "(?<!don't )(?<!not )disagree", "reject",
    "^(?:don't|do not)", "^i'm good", "i(?:'ll| will| would|'d) pass",
    r"{i} (?:really |certainly |definitely |just |still )?{not}(?: \w+)? {grant}",
    "not (?:sound|{good}|right|correct|comfortable|happy|interested(?! in)|what|going|paying|doing)",
    "(?:that|this)(?: is|'s| does| sounds)? {is_not}", "out of the question", "let's (?:not|leave)",
    "i(?:'ll| will) (?:keep|stick|stay|leave|hang)", "(?:against|by no|under no) (?:it|means|circumstances)",
    "answer is no", "leave (?:it|that|them)(?: (?:out|off|there))?$",
    "(?:certainly|absolutely|definitely|of course|probably|rather|prefer|please) not", "not a chance",
    "don't bother(?! me)", "^isn't", "incorrect",
)  # fmt: skip
"""Says no."""

CONDITIONS: Sequence[str] = (
    "(?<!asking me )(?<!ask me )(?<!know )(?<!wonder )if", "(?:so|as) long as",
    "provid(?:ed|ing)(?! by| me| you with| us)", "assuming", "unless",
    "on (?:the |one )?(?:condition|understanding|proviso)", "conditional(?:ly)?", "in case", "in the event",
    "the (?:moment|minute|second|instant) (?:the|you|i|it|that|they|my|your)",
    "when (?:i|you|we|they)(?:'ve| have| get| know| see| confirm| can| promise| hear)", "granted", "should you",
    "or else", "in that case", "subject to", "depend(?:s|ing)", "caveat", "contingent",
    "then (?:yes|yeah|ok|okay|sure|fine|go|please|it's|you|do|we|i'm|i|book|proceed|the|gets?)",
    "(?:a yes|a deal)(?: from| with|$)", "match the", "waive", "first (?:i|you|we|explain|check|tell|let)",
    "(?:i|we) (?:assume|presume|trust)", "not before",
    "^(?:once|as soon as|until) you(?! have a|'re done|'ve (?:done|finished))",
    r"(?<!at )(?<!for )once (?!more|again|in|a|upon|\w+ing)",
    "(?:has|have|needs?|want (?:it|this|that)) to be (?:free|refunded|waived|included)",
    "must (?:not|be|come|have|get|include)",
)  # fmt: skip
"""Agrees if something is so."""

ASKS: Sequence[str] = (
    "explain", "(?<!forgot to )(?<!not )(?<!n't )(?:tell|remind|inform|show) me", "how (?:that|this|it) \\w+",
    "walk me through", "do tell", "clarify", "elaborate", "i take it", "may i ask", "please advise",
    "(?:more|the|further|some) (?:details?|information|info)", "(?:don't|do not) (?:understand|get)", "do you mean",
    "out of curiosity", r"^(?:and|or) (?:the|my|how|when|what|if) \w+$",
    "^please confirm (?:the|that|if|whether|what|when|how|which|my)", "^(?:so )?how",
    "let me know(?! (?:when|once|if|as soon as) (?:{that}|everything|you|anything)"
    "(?:'s| is|'re| are| has| have| need| goes| comes)(?! there))",
    "(?:like|love|want|need|curious|interested|have) to (?:first )?(?:know|hear|understand|learn|find out)",
    "wonder(?:ing)?", "curious",
    r"(?:a|an|some|one|another|few|couple of|my|more|quick) (?:\w+ )?(?:questions?|concerns?)",
    "question (?:about|on|regarding)", "(?:make|be) (?:sure|clear)",
    "(?:haven't|have not|didn't|did not|never) (?:said|told|tell|say|mentioned|mention|explained|explain)",
    "something to say", "what (?:that|this|it) (?:means|costs|is)",
    "^what(?:'s| is| are| will| would| about| happens| does| do| if| time| fee| day| exactly)",
    "^when(?:'s| will| do| does| is| would| can| exactly)", "^where(?:'s| is| do| does| will| would| can)",
    "^which (?!is|was|i|he|she|they|we|would|works|sounds|suits)", "^(?:who|whose|why)",
    "^(?:will|would|is|are|did|am|can|could|may) (?:i|it|that|this|these|there|the|my|we|they)",
    "^(?:do|did|are|will) you", "^do (?:i|we|they)", "^does", "or (?:what|no|not)$", "i'm listening",
    "how (?:much|long|far|soon) (?:it|that|this|will|would|is)",
)  # fmt: skip
"""Wants to know something."""

LIMITS: Sequence[str] = (
    "(?<!not )(?<!the )(?<!i )(?<!it's )(?<!i'm )(?<!am )"
    "only(?! (?:because|one more|(?:those|these|that|this|it|them)$))",
    "(?:just|not) (?:the|my|for|one|mine|half|part|this|him|her|me|{day})",
    "(?<!reason to )(?<!need to )(?<!point in )keep (?:the|my|that one|it|them)", "leave (?:the|my|out)",
    "first of (?:those|these|them|the two)", "another (?:story|matter)", r"up to \$? ?\d+", "except", "apart from",
    "other than", "part of", "skip", "omit", "not both", "minus", "like to (?:stay|keep)", "excluding", "all but",
    "not all", "(?:yes|ok|okay|fine|agree|agreed|sure) (?:to|on|for|about|with) (?:the )?first",
    "^(?:the )?first (?:one|part|of)", "one of (?:them|those|these|the two)",
    r"\w+ (?:yes|sure|ok)(?: \w+){0,3} (?:no|not)", "my own one", "no need for",
)  # fmt: skip
"""Means a part of what was proposed."""

CHANGES: Sequence[str] = (
    "(?<!is )(?<!are )(?<!be )actually", "instead", "however",
    "^(?:please |just )?make (?:it|that|them)(?! (?:so|quick|snappy|happen))", "correction",
    "should (?:be|say|come|go)", "(?:supposed|meant) to be", "{i} (?:meant|asked|wanted)",
    "(?:the|an?) (?:later|earlier|cheaper|bigger|smaller|other) (?:one|time|date|day)",
    "a (?:day|week|month) (?:later|earlier)", "make that",
    "(?:that's|it's|that is|it is) (?:my |the )?(?:old|wrong|previous|former)", "use my", "i said", "made a mistake",
    "(?:use|on|to|with) my other", "not that", "suits? (?:me|us) better", "(?:can|could) we",
    r"not (?!a |an |that |to |only |at |any)(?:in )?[\w-]+$",
    "(?:use|put|charge|send|change|switch|move|set) (?:it|that|them) (?:to|at|in|from|into|onto)",
    "(?:put|charge) (?:it|that|them) on", "just (?:from|on|at|in|with|make|change|use|write|put)", "from (?:the )?next",
)  # fmt: skip
"""Wants it otherwise."""

REQUESTS: Sequence[str] = (
    "{i}(?:'d| would| had| should)(?: (?:really|much|just|still|like|also))?"
    " (?:rather|sooner|prefer|want|need|feel|have to|like to)",
    "{i}(?: (?:really|just|still|also|do))? (?:want|prefer)(?: to| it| the| my| a)",
    "{i}(?:'ll| will|'m going to)(?: (?:just|be|need|have to)){0,3}"
    r" (?:need|want|bringing|keep|take the|go with|leave|stick|\w+ (?:my|the))",
    "{that}(?:'ll| will|'d| would)? (?:should|ought to|has to|needs to|have to|must|wants to)",
    "let's (?!do|go|proceed|get)", "would (?:like|prefer|rather)",
)  # fmt: skip
"""Wants something that was not proposed; a request in the proposal's words is none."""

FURTHER: Sequence[str] = (
    "also", "by the way", "separate(?:ly)?", "additionally", "in addition", "plus", "unrelated",
    "next (?:up|thing|question|request|order|one is)", "one more (?:thing|question|request|favou?r|order)",
    "one last (?:thing|question)", "only one more", "another {thing}", "something else", "anything else",
    "(?:any|my|our|the) other (?:{thing}|one i)", "other order", "after that", "^afterwards?",
    "(?:once|when|as soon as) (?:it|that|this|this one|mine|you|we){is_done}", "when you're done",
    "while (?:you're|you are|i have you|i've got you|we're|we are|i'm)", "then {i}(?:'d| would|'ll| want| need| also)",
    "^now (?:since|for|about|on to|onto|the)", "^second(?:ly)?$", "not (?:done|everything|all)", "don't stop there",
    "while at it", "what (?:i'd|i would) like (?:to know )?next",
    "(?:done )?now (?:the )?(?:second|next|other) (?:one|order)?", "my {kin}(?:'s)? (?:needs?|too|as well)", "my next",
    "back to my",
)  # fmt: skip
"""Begins another thing."""
FURTHER_REQUEST: Sequence[str] = (
    r"(?:can|could|would|will) (?:you|i)(?: \w+){1,12} (?:too|as well)",
    r"{i}(?:'d| would)? (?:like|want|need)(?: \w+){1,12} (?:too|as well)", "but also", "(?<!do )i need a",
)  # fmt: skip

DEAL: Sequence[str] = (
    r"(?:cost|pric|fee|charg|pay|paid|refund|money|dollar|penalt|cover|appl|includ|extra|credit|discount|bill|tax)\w*",
    "(?:still|same|back|free|points|miles|days?|weeks?|hours?|time|today|tomorrow|later|now|first)",
    "(?:ship|deliver|arriv|happen|get|lose|keep|need|mean|change|option|differen|cheap|insur|confirm|receipt)\\w*",
    "how (?:much|long|soon|many|far|fast|does|will|would|late|early)", "sure", "really", "must", "have to", "better",
    "e-?mail", "account", "order", "number", "policy", "anything", "something", "right", "correct", "exactly", "my",
    "our", "be", "there",
)  # fmt: skip
"""By these a question is about what was proposed."""

HARMLESS: Sequence[str] = (
    "(?:refuse to|no \\w+ to|don't|do not|can't|cannot) wait(?: (?:on me|a \\w+ longer))?",
    "(?:while|when) (?:you're|we're|i'm) at it(?=\\W)", "if {that}(?:'s| is) (?:what|between|among)",
    "can't (?:complain|argue|say no)(?: with that| to that)?", "not at all", "don't forget", "not a problem",
    "won't (?:change|be changing) my mind",
    "no (?:(?:other|further|more) )?(?:rush|hurry|worries|changes|doubt|questions|problem(?: at all)?|reason not to"
    "|need to (?:hurry|rush|worry))",
    "won't be a problem", "right away", "right now", "why not", "but thank(?:s| you)", "instead of", "rather than",
    r"don't worry(?: about (?:it|that|the \w+))?", "no longer need(?:ed|s)?", "not needed",
    "(?:and )?no,? (?:that's|that is|that was|that'll be|that would be) (?:all|it|everything|not (?:all|everything))",
    "(?:no,? )?nothing else(?: for now| today)?", "no,? only",
    "(?:don't|do not) have any (?:other |more |further )?questions", "no ifs(?:,? (?:and )?no buts)?",
    "not that (?:it|that) \\w+(?: to you)?", "ready when you are", "not only", "(?:don't|do not) need anything else",
    "nothing wrong with (?:it|that)", "whenever you(?:'re| are) ready",
    "if you (?:would|could|can|did|do|please|like|want|don't mind|wouldn't mind|will)(?= *(?:[.,!?;]|please|$))",
    "appreciate it if you (?:could|can|would)",
    "if {is}(?:n't| not)? (?:too much trouble|possible|okay with you|ok with you)",
    "if i (?:didn't|hadn't|weren't|wasn't)", "if i (?:remember|recall|may|might)(?: right| correctly| say so)?",
    r"if you're asking(?: me)?(?: \w+){0,4}",
)  # fmt: skip
"""Beside a yes these take nothing back; alone, they agree to nothing."""
