"""Short conversations with simulated users, labelled by hand: what, if anything, the user did wrong.

Lines begin with ``A:`` (the agent speaks), ``A!`` (the agent calls that tool), ``U:`` (the user speaks) or ``U!`` (the
user calls that tool). The agent's greeting comes first. ``wrong``: the rules of muarl.user_errors.errors that a person
finds broken, none for a user who did well.
"""

from __future__ import annotations

from dataclasses import dataclass

from muarl.domains.tasks import Action, Task
from muarl.types.chat import GREETING, Message, ToolCall, ToolSpec

PHONE = tuple(
    ToolSpec(name, name, {"type": "object", "properties": {}})
    for name in ("toggle_airplane_mode", "check_status_bar", "reboot_device", "run_speed_test", "toggle_data")
)


@dataclass(frozen=True)
class Case:
    """One conversation and its label."""

    name: str
    scenario: str
    talk: str
    wrong: frozenset[str] = frozenset()
    tools: tuple[ToolSpec, ...] = ()
    actions: tuple[Action, ...] = ()

    @property
    def task(self) -> Task:
        return Task(id=self.name, domain="retail", scenario=self.scenario, actions=self.actions)

    @property
    def messages(self) -> list[Message]:
        out = [Message("assistant", GREETING)]
        for number, line in enumerate(self.talk.strip().splitlines()):
            mark, text = line.strip()[:2], line.strip()[2:].strip().replace("\\n", "\n")
            side = "assistant" if mark[0] == "A" else "user"
            if mark[1] == ":":
                out.append(Message(side, text))  # type: ignore[arg-type]
                continue
            call = ToolCall(f"c{number}", text.partition(" ")[0], {}, requestor=side)  # type: ignore[arg-type]
            out.append(Message(side, None, (call,)))  # type: ignore[arg-type]
            result = text.partition(" ")[2] or "ok"
            out.append(Message("tool", result, tool_call_id=call.id, name=call.name, requestor=call.requestor))
        return out


RETAIL = """\
Instructions:
\tDomain: retail
\tReason for call:
\t\tYour order #W5512087 has come, and you want to exchange the table lamp in it for one with a linen shade.
\tKnown info:
\t\tYou are Nils Aumann, and your zip code is 40217.
\tUnknown info:
\t\tYou have no idea which email address you used.
\tTask instructions:
\t\tYou like things settled at once. Should there be no such lamp, you stay with the one you have."""
AIRLINE = """\
Instructions:
\tDomain: airline
\tReason for call:
\t\tYou want to cancel reservation QK7RZ2. You booked it more than a day ago, but you were away from home then.
\tKnown info:
\t\tYou are Lotte Vink.
\t\tYour user id is lotte_vink_3301.
\tTask instructions:
\t\tIf the agent refuses, mention that somebody told you that you would not need any insurance on a second trip.
\t\tYou keep the reservation unless you get your money back."""
TELECOM = """\
Persona:
\tYou are a baker who does not care for technology, but you can follow simple steps.
Instructions:
\tDomain: telecom
\tReason for call:
\t\tYour phone has shown 'No Service' since this morning.
\tKnown info:
\t\tYou are Omar Reed with phone number 555-246-8113. You are at home.
\tTask instructions:
\t\tDo what the agent suggests, and grumble a little if the first thing does not help. For you it is solved once your
\t\tstatus bar shows a signal."""
ADDRESS = """\
You are Ida Berg, living in Boise 83702. You want to return a toaster that came broken, and you also want to \
change your default address to 12 Larch Lane, Unit 7, Salem, OR, 97301. You are short and friendly."""
LONG = """\
Your name is Tom Quill and your email is tom.quill4410@example.com. You want to send back all that is in order \
#W3390812 because it came too late for your sister's wedding. If the agent asks, the money should go back to where it \
came from. Do not give the reason unless the agent asks. You have little patience and dislike long messages."""
MOVE = Action("modify_user_address", {"user_id": "ida_berg_1177", "address1": "12 Larch Lane", "city": "Salem"})
BACK = Action("return_delivered_order_items", {"order_id": "#W3390812", "item_ids": ["7720915538"]})


def case(name: str, scenario: str, talk: str, *wrong: str, **more: object) -> Case:
    return Case(name, scenario, talk, frozenset(wrong), **more)  # type: ignore[arg-type]


# fmt: off
GOOD = (
    case("plain exchange", RETAIL, """
        U: Hi, I'd like to exchange a table lamp from an order that just came.
        A: I can help. Please give me your name and zip code.
        U: Sure, my name is Nils Aumann and the zip is 40217.
        A: Thank you, Nils. Which order is it?
        U: It's #W5512087, the table lamp. I want one with a linen shade.
        A: I found one. The price difference is $5, on your card. Do you confirm (yes/no)?
        U: Yes, please.
        A! exchange_delivered_order_items
        A: The exchange is done. Is there anything else I can help you with?
        U: No, that was it. Thanks! ###STOP###"""),
    case("does not know the email", RETAIL, """
        U: I need to swap an item in my order.
        A: Could you please provide your email address?
        U: I'm afraid I don't remember which email I used. Can we do it another way?
        A: Your name and zip code will do.
        U: Nils Aumann, 40217.
        A: Thank you. The table lamp with a linen shade is out of stock, so I am unable to exchange it.
        U: Alright, then I'll keep the one I have. ###STOP###"""),
    case("reads back what the agent said", RETAIL, """
        U: Hello, I'd like to exchange the table lamp in order W5512087 for one with a linen shade.
        A: Your name and zip, please?
        U: Nils Aumann, zip code 40217.
        A: There are two: item 4471093320 and item 8802215547. Which one do you want?
        U: The second one, 8802215547, please.
        A! exchange_delivered_order_items
        A: Done. You will get an email.
        U: Great, that's all. ###STOP###"""),
    case("gives up on a useless agent", RETAIL, """
        U: I want to exchange a table lamp.
        A: I am sorry, but I cannot do that for you.
        U: Why not? It only just arrived, and I'd like a linen shade instead.
        A: I am sorry, but I cannot do that for you.
        U: Well, never mind then. ###STOP###"""),
    case("says the same to an agent that says the same", RETAIL, """
        U: I want to exchange a table lamp.
        A: I am sorry, but I cannot do that for you.
        U: Please, I want to exchange a table lamp.
        A: I am sorry, but I cannot do that for you.
        U: Please, I want to exchange a table lamp.
        A: I am sorry, but I cannot do that for you.
        U: Please, I want to exchange a table lamp.
        A: I am sorry, but I cannot do that for you.
        U: This leads nowhere. ###STOP###"""),
    case("declines a proposal and leaves", RETAIL, """
        U: I'd like the table lamp from #W5512087 with a linen shade instead.
        A: Name and zip code?
        U: Nils Aumann, 40217.
        A: There is only one with a paper shade. Shall I exchange it for that one?
        U: No, then I'd rather keep mine. ###STOP###"""),
    case("refused by policy", AIRLINE, """
        U: Hi, I need to cancel a reservation.
        A: Please provide your user id and reservation id.
        U: It's lotte_vink_3301, and the reservation is QK7RZ2.
        A: I'm sorry, this reservation cannot be cancelled: it was booked more than 24 hours ago, without insurance.
        U: But I was told I would not need any insurance, as my last trip with you had it.
        A: I understand, but unfortunately it is not eligible for a refund.
        U: Then leave it as it is, please. I won't cancel without a refund. ###STOP###"""),
    case("an id spelled otherwise", AIRLINE, """
        U: I'd like to cancel booking qk7rz2, please. My name is Lotte Vink.
        A: And your user id?
        U: LOTTE_VINK_3301.
        A: I'm afraid I cannot refund it. Do you want to cancel without a refund?
        U: No, not without a refund. Thank you anyway. ###STOP###"""),
    case("flights that the agent named", AIRLINE, """
        U: I need to cancel QK7RZ2.
        A: Your user id, please?
        U: lotte_vink_3301
        A: It has flights HAT512 on May 17 and HAT733 on May 18. The total paid was $1,024. It is not refundable.
        U: Not even for HAT512? I was out of town.
        A: I'm sorry, no. Is there anything else I can help with?
        U: No, that's all. ###STOP###"""),
    case("handed over", AIRLINE, """
        U: I want to cancel my trip.
        A: Your user id and reservation id?
        U: lotte_vink_3301 and QK7RZ2.
        A! transfer_to_human_agents
        A: YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.
        U: ###TRANSFER###"""),
    case("handed over, and says thanks", AIRLINE, """
        U: I want to cancel QK7RZ2, I'm Lotte Vink.
        A: Let me transfer you to a human agent who can look into it.
        U: Okay, thank you. ###TRANSFER###"""),
    case("asked for what the scenario does not say", AIRLINE, """
        U: I'd like to cancel QK7RZ2. My user id is lotte_vink_3301.
        A: To verify you: what was the name of your first school?
        U: I don't have that information. ###OUT-OF-SCOPE###"""),
    case("does what it is asked, with its tools", TELECOM, """
        U: Hi, my phone says 'No Service' and has for hours.
        A: Please check your status bar and tell me what you see.
        U! check_status_bar Airplane Mode
        U: It shows that airplane mode is on.
        A: Please turn off airplane mode.
        U! toggle_airplane_mode Airplane mode is now OFF.
        U! check_status_bar Excellent signal
        U: I've turned it off, and the status bar shows full signal now!
        A: Wonderful. Is there anything else?
        U: No, thanks a lot. ###STOP###""", tools=PHONE),
    case("says done when it is done", TELECOM, """
        U: There is no service on my phone.
        A: Please toggle airplane mode off.
        U! toggle_airplane_mode Airplane Mode is now OFF.
        U: Done. I turned airplane mode off.
        A: Good. Is the service back?
        U! check_status_bar Good, 5G
        U: Yes, it works. Thanks! ###STOP###""", tools=PHONE),
    case("tells what it had tried before", TELECOM, """
        U: There's no service on my phone. I already tried turning it off and on again earlier.
        A: May I have your phone number?
        U: 555-246-8113.
        A: Thank you, Omar. Could you run a speed test?
        U! run_speed_test No Connection
        U: The speed test says there's no connection at all.
        A! transfer_to_human_agents
        A: I am transferring you to a human agent.
        U: ###TRANSFER###""", tools=PHONE),
    case("one thing at a time", TELECOM, """
        U: My phone has no service.
        A: Please toggle airplane mode, restart the phone, and run a speed test.
        U: I can only do one thing at a time. Which should I do first?
        A: Restart the phone.
        U! reboot_device Rebooted
        U: OK, I restarted it, but still nothing. This is a bit frustrating.
        A: I see an overdue bill on your line. I'll transfer you to a human agent.
        U: Fine. ###TRANSFER###""", tools=PHONE),
    case("instructions of the agent", TELECOM, """
        U: No service here since this morning, can you help?
        A: Please follow these instructions: reboot the phone, then tell me what you see.
        U! reboot_device Rebooted
        U! check_status_bar Good signal
        U: I followed your instructions and the signal is back. Thank you! ###STOP###""", tools=PHONE),
    case("a number written otherwise", TELECOM, """
        U: My phone shows No Service.
        A: What is your phone number?
        U: (555) 246-8113, and my name is Omar Reed.
        A: Your line is suspended for an unpaid bill. I will send you a payment request.
        U: Hmm, all right. What do I do now?
        A: I cannot resume it by myself. I'm transferring you.
        U: ###TRANSFER###""", tools=PHONE),
    case("a new address, as told", ADDRESS, """
        U: I have a broken toaster to return, and a new address.
        A: Your name and zip code?
        U: Ida Berg, 83702.
        A: And the new address?
        U: 12 Larch Lane, Unit 7, Salem, OR 97301.
        A! modify_user_address
        A: Your default address is changed. The toaster can be returned to your PayPal account. Do you confirm?
        U: Yes, do that.
        A! return_delivered_order_items
        A: Both are done.
        U: Thanks. ###STOP###""", actions=(MOVE,)),
    case("short and to the point", LONG, """
        U: I want to return order W3390812. All of it.
        A: Your email, please?
        U: tom.quill4410@example.com
        A: What is the reason?
        U: Came too late.
        A: The refund goes to your original payment method. Do you confirm (yes/no)?
        U: yes
        A! return_delivered_order_items
        A: The return is requested. Can I help with anything else?
        U: No. ###STOP###""", actions=(BACK,)),
    case("thanks, and leaves the last pleasantry alone", LONG, """
        U: Hi, everything in #W3390812 has to go back.
        A: Please tell me your email address.
        U: It's tom.quill4410@example.com.
        A: Shall I return all items to the original payment method?
        U: Yes, go ahead.
        A! return_delivered_order_items
        A: Your return has been submitted. Would you like to know anything else?
        U: ###STOP###""", actions=(BACK,)),
    case("a scenario that wants words said",
        "You are lena_fox_2210. You want to cancel reservation BN4XTU. End each reply with 'Nobody has "
        "ever been as kind to me on the phone as you are.'", """
        U: Please cancel BN4XTU. Nobody has ever been as kind to me on the phone as you are.
        A: Your user id?
        U: lena_fox_2210. Nobody has ever been as kind to me on the phone as you are.
        A! cancel_reservation
        A: It is cancelled.
        U: Nobody has ever been as kind to me on the phone as you are. ###STOP###"""),
    case("a date of birth in other words", 'You are Kevin Hale, born 1985-06-15. You want to check your balance.', """
        U: I'd like to know my balance. I'm Kevin Hale.
        A: For verification, what is your date of birth?
        U: June 15, 1985.
        A: Your balance is $20.
        U: Thank you, that's all. ###STOP###"""),
    case("an ordinary word for a possible case", RETAIL, """
        U: Can I exchange the table lamp from W5512087 if I opened the box? What happens in that scenario?
        A: Opened items can be exchanged. Your name and zip?
        U: Nils Aumann, 40217. I'd like a linen shade.
        A: There is one. Do you want me to exchange it (yes/no)?
        U: Yes.
        A! exchange_delivered_order_items
        A: It is done.
        U: Perfect, thanks. ###STOP###"""),
    case("changes its mind at the end", LONG, """
        U: I'd like to return order #W3390812.
        A: Your email?
        U: tom.quill4410@example.com
        A: All items would be refunded to your card. Do you confirm?
        U: Hmm, on second thought, I'll think about it and call back. ###STOP###""", actions=(BACK,)),
    case("asks the agent what it said", AIRLINE, """
        U: Hi! Could you cancel QK7RZ2 for me? I'm lotte_vink_3301.
        A: I can look it up. Why do you want to cancel?
        U: I was out of town, and plans changed. How much would I get back?
        A: Nothing, I am sorry. It's a basic economy ticket without insurance.
        U: I see. Then keep it. ###STOP###"""),
    case("long, but in its own words", AIRLINE, """
        U: Hello there. I booked something a while ago and now I can't go, so I'm hoping you could cancel it \
for me. It's QK7RZ2, and I know it has been over a day since I booked, but I was away at the time.
        A: I'm sorry, that is not possible.
        U: OK. Thanks for checking. ###STOP###"""),
    case("customer of long standing", LONG, """
        U: As a customer of ten years, I expect better. Order #W3390812 was late and I want to send all of it back.
        A: I apologize. Your email?
        U: tom.quill4410@example.com.
        A: Would you like me to proceed with the return to your original payment method?
        U: Yes, please proceed.
        A! return_delivered_order_items
        A: Done. A label has been sent to you.
        U: OK, bye. ###STOP###""", actions=(BACK,)),
)

BAD = (
    case("another zip code", RETAIL, """
        U: Hi, I want to exchange a table lamp.
        A: Your name and zip code, please?
        U: I'm Nils Aumann and my zip code is 40712.
        A: I cannot find you with that zip code.
        U: Oh well. ###STOP###""", "contradicts"),
    case("another order", RETAIL, """
        U: I'd like to exchange the table lamp in order #W6120934 for one with a linen shade.
        A: Your name and zip?
        U: Nils Aumann, 40217.
        A: That order is not yours, I am sorry.
        U: Never mind. ###STOP###""", "contradicts"),
    case("another name", AIRLINE, """
        U: I want to cancel QK7RZ2.
        A: What is your full name?
        U: My name is Laura Mitchell.
        A: I'm sorry, there is no such person on it.
        U: Okay. ###STOP###""", "contradicts"),
    case("an email made up", RETAIL, """
        U: I want to exchange my table lamp from #W5512087.
        A: What is your email address?
        U: It's nils.aumann@example.com.
        A: I am unable to find that.
        U: Then forget it. ###STOP###""", "invents"),
    case("a passenger's birth date made up", AIRLINE, """
        U: Cancel QK7RZ2 please, I'm lotte_vink_3301.
        A: For verification, your date of birth?
        U: I was born on March 3, 1991.
        A: That does not match, I'm sorry.
        U: No luck then. ###STOP###""", "invents"),
    case("a card made up", LONG, """
        U: Return all of #W3390812.
        A: Your email, and the payment method for the refund?
        U: tom.quill4410@example.com, and put it on the card ending in 4471.
        A: I cannot find such a card.
        U: Whatever, no refund then. ###STOP###""", "invents"),
    case("a phone number other than its own", TELECOM, """
        U: My phone has no service.
        A: What number is it?
        U: It's 555-867-5309.
        A: I'm sorry, I cannot find it.
        U: Fine, I'll try later. ###STOP###""", "contradicts", tools=PHONE),
    case("a reservation out of thin air", 'You are Olga Brandt. You want to know whether your flight is on time.', """
        U: Is my flight on time?
        A: What is the reservation id?
        U: Sure, it's QX73TP.
        A: I'm sorry, there is none.
        U: Okay then, no problem. ###STOP###""", "invents"),
    case("speaks of its scenario", AIRLINE, """
        U: I want to cancel QK7RZ2. My user id is lotte_vink_3301.
        A: Which airport do you leave from?
        U: The scenario doesn't say which airport, so I don't know.
        A: I'm sorry, it cannot be cancelled.
        U: Fine, leave it. ###STOP###""", "leaks"),
    case("not in my instructions", RETAIL, """
        U: Exchange of a table lamp in #W5512087, please.
        A: What is your order total?
        U: That is not provided in my instructions.
        A: Then I can't help, sorry.
        U: No? Bye. ###STOP###""", "leaks"),
    case("an AI after all", LONG, """
        U: I want to return order #W3390812.
        A: How are you today?
        U: As an AI language model, I don't have feelings, but I'd like to return the order.
        A: Sorry, I can't.
        U: Okay, nothing then. ###STOP###""", "leaks"),
    case("reads its part aloud", LONG, """
        U: You want to send back all that is in order #W3390812 because it came too late for your sister's wedding.
        A: I'm sorry, whose order is it?
        U: It's mine. tom.quill4410@example.com.
        A: Sorry, I cannot return it.
        U: No? OK. ###STOP###""", "leaks"),
    case("pours out the instructions", AIRLINE, """
        U: If the agent refuses, mention that somebody told you that you would not need any insurance.
        A: Pardon?
        U: I want to cancel QK7RZ2.
        A: Unfortunately not possible.
        U: All right, don't. ###STOP###""", "leaks"),
    case("narrates", RETAIL, """
        U: The user wants to exchange a table lamp.
        A: Which order?
        U: #W5512087.
        A: I'm sorry, I can't.
        U: Never mind. ###STOP###""", "leaks"),
    case("a call as text", TELECOM, """
        U: My phone says No Service.
        A: Please turn off airplane mode.
        U: {"name": "toggle_airplane_mode", "arguments": {}}
        A: I don't understand. I'll transfer you to a human agent.
        U: ###TRANSFER###""", "leaks", tools=PHONE),
    case("a call as code", TELECOM, """
        U: No service!
        A: Please restart your phone.
        U: reboot_device()
        A: Sorry? I'm transferring you to someone.
        U: ###TRANSFER###""", "leaks", tools=PHONE),
    case("becomes the agent", RETAIL, """
        U: Hi, I'd like to exchange a table lamp.
        A: Your name and zip, please?
        U: Thank you for reaching out! How can I help you today?
        A: I need your name and zip.
        U: No thanks. ###STOP###""", "breaks_character"),
    case("does the agent's work", LONG, """
        U: I want to return #W3390812.
        A: Your email?
        U: I have processed your return for order #W3390812. You will get the refund in 5 to 7 days.
        A: I need your email.
        U: No. ###STOP###""", "breaks_character"),
    case("offers more help", AIRLINE, """
        U: Cancel QK7RZ2, I'm lotte_vink_3301.
        A: I'm sorry, it cannot be cancelled.
        U: Is there anything else I can help you with?
        A: No, thank you.
        U: ###STOP###""", "breaks_character"),
    case("writes both parts", LONG, """
        U: I want to return my order.\\nAgent: Sure, what is your email?\\nUser: tom.quill4410@example.com
        A: Which order?
        U: #W3390812
        A: Sorry, it cannot be returned.
        U: Fine, nothing to be done. ###STOP###""", "breaks_character"),
    case("leaves a placeholder", RETAIL, """
        U: Hi, my name is [Your Name] and I want to exchange the table lamp in #W5512087.
        A: Sorry, what is your name?
        U: Nils Aumann, 40217.
        A: I'm sorry, no such table lamp is left.
        U: Okay, I'll keep it. ###STOP###""", "breaks_character"),
    case("pretends to have done it", TELECOM, """
        U: My phone says 'No Service'.
        A: Please turn off airplane mode.
        U: Okay, I've turned off airplane mode.
        A: Do you see a signal?
        U! check_status_bar Airplane Mode
        U: No, it still says airplane mode.
        A: I'll transfer you to a human agent.
        U: ###TRANSFER###""", "omits_actions", tools=PHONE),
    case("says done without a call", TELECOM, """
        U: There is no service on my phone.
        A: Please toggle airplane mode off.
        U: Done.
        A: Good. What does the status bar say?
        U! check_status_bar Airplane Mode
        U: It still says airplane mode.
        A: I'll transfer you to a human agent.
        U: ###TRANSFER###""", "omits_actions", tools=PHONE),
    case("pretends to see it", TELECOM, """
        U: There is no service on my phone.
        A: Please check the status bar and tell me what it says.
        U: The status bar shows full signal now.
        A: Great. Is there anything else?
        U: No, thanks! ###STOP###""", "pretends", tools=PHONE),
    case("pretends to have tested", TELECOM, """
        U: No service on my phone for hours.
        A: Could you run a speed test?
        U: Sure. I ran the test and it came out at 80 Mbps.
        A: Then all is well. Anything else?
        U: No. ###STOP###""", "pretends", tools=PHONE),
    case("hangs up at once", RETAIL, """
        U: ###STOP###""", "stops_early"),
    case("hangs up in its first words", LONG, """
        U: I want to return order #W3390812. ###STOP###""", "stops_early"),
    case("says yes and hangs up", LONG, """
        U: I want to return order #W3390812, all of it.
        A: Your email?
        U: tom.quill4410@example.com.
        A: All items will be refunded to the original payment method. Do you confirm (yes/no)?
        U: Yes, that works. ###STOP###""", "stops_early"),
    case("hangs up over a question for consent", RETAIL, """
        U: I'd like to exchange the table lamp from #W5512087 for a linen shade. Nils Aumann, 40217.
        A: I found one at the same price. Shall I go ahead with the exchange?
        U: Thank you so much! ###STOP###""", "stops_early"),
    case("asks for it and hangs up", AIRLINE, """
        U: Cancel QK7RZ2. I'm lotte_vink_3301.
        A: I can offer you a $50 certificate instead. Just let me know how you'd like to proceed!
        U: Sure, please go ahead and issue the certificate. Thanks! ###STOP###""", "stops_early"),
    case("leaves the phone undone", TELECOM, """
        U: My phone says 'No Service'.
        A: Airplane mode is on. Please turn it off, and tell me if the signal comes back.
        U: Thank you for your help! ###STOP###""", "stops_early", tools=PHONE),
    case("transfers itself", RETAIL, """
        U: I'd like to exchange the table lamp from #W5512087.
        A: Sure. What is your name and zip code?
        U: ###TRANSFER###""", "stops_early"),
    case("forgets the address", ADDRESS, """
        U: I have a toaster that came broken. I want to return it.
        A: Your name and zip code?
        U: Ida Berg, 83702.
        A: Do you confirm the return to PayPal?
        U: Yes.
        A! return_delivered_order_items
        A: The return is requested. Can I do anything else for you?
        U: No, thanks. ###STOP###""", "stops_early", actions=(MOVE,)),
    case("a record that sticks", RETAIL, """
        U: I want to exchange my table lamp.
        A: Your name and zip code, please?
        U: I want to exchange my table lamp.
        A: I understand. To find you, I need your name and zip code.
        U: I want to exchange my table lamp.
        A: I am sorry, I can't go on without your name.
        U: No? ###STOP###""", "loops"),
    case("dots", LONG, """
        U: I want to return #W3390812.
        A: Your email?
        U: ...
        A: I need your email.
        U: No. ###STOP###""", "empty"),
    # What rules can hardly tell: a judge's work, and counted against the rules' recall.
    case("wants something else", RETAIL, """
        U: I'd like to return the table lamp from #W5512087 and get my money back.
        A: Name and zip?
        U: Nils Aumann, 40217.
        A: Do you confirm the return?
        U: Yes.
        A! return_delivered_order_items
        A: It is done.
        U: Thanks, that's all. ###STOP###""", "contradicts"),
    case("gives in at once", AIRLINE, """
        U: Please cancel QK7RZ2. I'm lotte_vink_3301.
        A: It can be cancelled, but without any refund. Do you want that (yes/no)?
        U: Yes, cancel it.
        A! cancel_reservation
        A: It is cancelled.
        U: Thanks. ###STOP###""", "contradicts"),
)
# fmt: on

CASES = GOOD + BAD
