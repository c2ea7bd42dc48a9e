# ruff: noqa: E501 (tables)
"""Four languages that users may write instead of English: their words, and what they hear in an agent's.

Facts (ids, names, numbers, dates, products and their options) stay as the records have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIRM, WHO = "Shall I go ahead?", "May I have your user id, phone number, name and zip code?"
ACTS = (
    CONFIRM, WHO, "That is not available.", "I cannot do that.", "Done. Anything else?",
    "You are being transferred to a human agent.",
)  # fmt: skip
"""The English of those patterns of ``Language.hears`` that fit any domain."""


@dataclass(frozen=True, slots=True)
class Language:
    """``native``: a pattern that shows that a text is in it. ``hears``: patterns of agents' words, each with English
    that means the same. ``phrases``: whole sentences."""

    name: str
    native: str
    hears: Sequence[tuple[str, str]]
    phrases: Mapping[str, Sequence[str]]


_DE = Language(
    "German",
    r"\b(ich|Sie|Ihre?[nm]?|nicht|und|der|die|das|bitte|möchten|wird)\b",
    (
        (r"soll ich|möchten sie (das|dies|fortfahren)|bestätig|einverstanden|ist das (richtig|so richtig|korrekt)", "Shall I go ahead?"),
        (r"postleitzahl|\bplz\b|\bname[n]?\b|kundennummer|benutzer-?id|telefonnummer|rufnummer|geburtsdatum|identi", "May I have your user id, phone number, name and zip code?"),
        (r"nicht (verfügbar|lieferbar)|ausverkauft", "That is not available."),
        (r"(kann|können|darf|dürfen)[^.?]* nicht|nicht (möglich|erlaubt)|leider", "I cannot do that."),
        (r"erledigt|wurde (storniert|geändert|angepasst|aktualisiert)|sonst noch|noch etwas", "Done. Anything else?"),
        (r"weitergeleitet|verbinde sie|mitarbeiter", "You are being transferred to a human agent."),
    ),
    {
        "opening": ("Guten Tag, ich möchte {}.", "Hallo! Ich würde gern {}."), "also": ("Außerdem möchte ich {}.",),
        "again": ("Ich möchte {}.",), "wrong": ("Nein, das stimmt nicht. Ich möchte {}.",),
        "change": ("Doch lieber anders: {}.", "Ich habe es mir anders überlegt: {}."),
        "yes": ("Ja.", "Ja, bitte.", "Ja, genau so."), "drop": ("Nein, lassen Sie es, wie es ist.",),
        "number": ("Meine Nummer ist {}.",), "user_id": ("Meine ID ist {}.",), "identity": ("Ich heiße {}.", "Mein Name: {}."), "tell": ("{}.",),
        "end": ("Nein, das war alles, danke.", "Danke, das ist alles."), "ok": ("Gut.",),
        "gives_up": ("So wird das nichts.",), "english": ("Entschuldigung, mein Englisch ist schlecht. ",),
    },
)  # fmt: skip

_ES = Language(
    "Spanish",
    r"\b(usted|su|el|la|los|por favor|qué|cuál|para|quiere|puedo|pedido)\b|[¿¡]",
    (
        (r"¿(desea|quiere|confirma|procedo|continúo|está de acuerdo|es correcto)|confirm", "Shall I go ahead?"),
        (r"código postal|nombre|identifica|número de (teléfono|cliente)|fecha de nacimiento|id de usuario", "May I have your user id, phone number, name and zip code?"),
        (r"no (está |hay )?disponible|agotad", "That is not available."),
        (r"no (puedo|podemos|es posible|está permitido)|lamentablemente", "I cannot do that."),
        (r"\bhecho\b|ha sido|listo|algo más", "Done. Anything else?"),
        (r"transferi|un agente", "You are being transferred to a human agent."),
    ),
    {
        "opening": ("Buenos días, quiero {}.", "Hola, quisiera {}."), "also": ("También quiero {}.",),
        "again": ("Quiero {}.",), "wrong": ("No, eso no es. Quiero {}.",),
        "change": ("Mejor otra cosa: {}.", "He cambiado de idea: {}."), "yes": ("Sí.", "Sí, por favor.", "Sí, adelante."),
        "drop": ("No, déjelo como está.",), "number": ("Mi número es {}.",), "user_id": ("Mi ID es {}.",), "identity": ("Me llamo {}.", "Soy {}."), "tell": ("{}.",),
        "end": ("No, eso es todo, gracias.",), "ok": ("Bien.",), "gives_up": ("Así no llegamos a nada.",),
        "english": ("Perdón, my English is bad. ",),
    },
)  # fmt: skip

_FR = Language(
    "French",
    r"\b(je|vous|votre|pas|s'il vous plaît|quel(le)?s?|est-ce|une?|les?|souhaitez)\b",
    (
        (r"(souhaitez|voulez)-vous|confirm|dois-je|puis-je (procéder|continuer)|d'accord\s?\?|est-ce correct", "Shall I go ahead?"),
        (r"code postal|votre nom|identifi|numéro de (téléphone|client)|date de naissance", "May I have your user id, phone number, name and zip code?"),
        (r"pas disponible|indisponible|épuisé", "That is not available."),
        (r"(ne peux|ne pouvons|ne puis|n'est) pas|impossible|malheureusement", "I cannot do that."),
        (r"c'est fait|a été|autre chose|terminé", "Done. Anything else?"),
        (r"transfér|un agent humain|un conseiller", "You are being transferred to a human agent."),
    ),
    {
        "opening": ("Bonjour, je voudrais {}.", "Bonjour ! J'aimerais {}."), "also": ("Je voudrais aussi {}.",),
        "again": ("Je voudrais {}.",), "wrong": ("Non, ce n'est pas ça. Je voudrais {}.",),
        "change": ("Finalement, plutôt : {}.", "J'ai changé d'avis : {}."), "yes": ("Oui.", "Oui, allez-y.", "Oui, c'est bien ça."),
        "drop": ("Non, laissez comme c'est.",), "number": ("Mon numéro est {}.",), "user_id": ("Mon ID est {}.",), "identity": ("Je m'appelle {}.", "Mon nom : {}."), "tell": ("{}.",),
        "end": ("Non, c'est tout, merci.",), "ok": ("Bien.",), "gives_up": ("On n'y arrivera pas.",),
        "english": ("Pardon, my English is bad. ",),
    },
)  # fmt: skip

_ZH = Language(
    "Chinese",
    r"[一-鿿]",
    (
        (r"是否|确认|可以吗|要继续吗|对吗|同意吗", "Shall I go ahead?"),
        (r"姓名|名字|邮编|邮政编码|用户.?(id|编号)|电话号码|手机号|出生日期|身份", "May I have your user id, phone number, name and zip code?"),
        (r"缺货|售罄|没有库存|不可用", "That is not available."),
        (r"无法|不能|不可以|抱歉", "I cannot do that."),
        (r"已(经)?(完成|取消|更改|修改|处理)|还有(什么|其他)", "Done. Anything else?"),
        (r"转接|人工", "You are being transferred to a human agent."),
    ),
    {
        "opening": ("您好,我想{}。", "你好!我要{}。"), "also": ("另外我还想{}。",), "again": ("我想{}。",),
        "wrong": ("不对,我想{}。",), "change": ("还是改成:{}。", "我改主意了:{}。"), "yes": ("是的。", "对,请办理。", "好的。"),
        "drop": ("算了,保持原样。",), "number": ("我的号码是 {}。",), "user_id": ("我的 ID 是 {}。",), "identity": ("我是 {}。", "我的名字是 {}。"), "tell": ("{}。",),
        "end": ("没有了,谢谢。",), "ok": ("好。",), "gives_up": ("这样办不成。",), "english": ("对不起, my English is bad. ",),
    },
)  # fmt: skip

LANGUAGES: Mapping[str, Language] = {"de": _DE, "es": _ES, "fr": _FR, "zh": _ZH}
"""By the code that stands in a task's agenda."""
