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
    """A language that users speak."""

    name: str
    native: str
    """A pattern that shows that a text is in it."""
    hears: Sequence[tuple[str, str]]
    """Patterns of agents' words, each with English that means the same."""
    phrases: Mapping[str, Sequence[str]]
    """Whole sentences."""


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


# What services have in common: what is to be done, and to what.

_ENGLISH_VERBS = (
    "cancel", "change", "move", "add", "have", "ask", "book", "know", "find out", "pay", "lock", "unlock", "set", "get",
    "dispute", "reschedule", "renew", "swap", "order", "file", "hand in", "withdraw", "appeal", "end", "send", "buy",
    "return", "exchange", "open", "close", "report", "check", "create", "delete", "update",
)  # fmt: skip
_ENGLISH_NOUNS = (
    "booking", "reservation", "order", "account", "card", "appointment", "visit", "claim", "policy", "date", "day",
    "arrival", "time", "amount", "nights", "people", "room", "hotel", "doctor", "restaurant", "dish", "address",
    "number", "reason", "payment", "title", "name", "quantity",
    "new", "source", "target",
)  # fmt: skip

_DE_WORDS = (
    "stornieren|ändern|verschieben|hinzufügen|haben|anfragen|buchen|wissen|herausfinden|bezahlen|sperren|entsperren|festlegen|bekommen"
    "|beanstanden|verlegen|erneuern|tauschen|bestellen|einreichen|abgeben|zurückziehen|Einspruch einlegen|beenden|senden|kaufen"
    "|zurückgeben|umtauschen|öffnen|schließen|melden|prüfen|anlegen|löschen|aktualisieren",
    "Buchung|Reservierung|Bestellung|Konto|Karte|Termin|Termin|Schadensfall|Police|Datum|Tag"
    "|Anreise|Uhrzeit|Betrag|Nächte|Personen|Zimmer|Hotel|Arzt|Restaurant|Gericht|Adresse"
    "|Nummer|Grund|Zahlung|Titel|Name|Menge|neu|von|nach",
)
_ES_WORDS = (
    "cancelar|cambiar|mover|añadir|tener|pedir|reservar|saber|averiguar|pagar|bloquear|desbloquear|fijar|obtener"
    "|reclamar|aplazar|renovar|sustituir|encargar|presentar|entregar|retirar|apelar|terminar|enviar|comprar"
    "|devolver|cambiar por otro|abrir|cerrar|comunicar|comprobar|crear|borrar|actualizar",
    "reserva|reserva|pedido|cuenta|tarjeta|cita|visita|siniestro|póliza|fecha|día"
    "|llegada|hora|importe|noches|personas|habitación|hotel|médico|restaurante|plato|dirección"
    "|número|motivo|pago|título|nombre|cantidad|nuevo|desde|a",
)
_FR_WORDS = (
    "annuler|modifier|déplacer|ajouter|avoir|demander|réserver|savoir|trouver|payer|bloquer|débloquer|fixer|obtenir"
    "|contester|reporter|renouveler|remplacer|commander|déposer|remettre|retirer|faire appel|terminer|envoyer|acheter"
    "|retourner|échanger|ouvrir|fermer|signaler|vérifier|créer|supprimer|mettre à jour",
    "réservation|réservation|commande|compte|carte|rendez-vous|visite|sinistre|contrat|date|jour"
    "|arrivée|heure|montant|nuits|personnes|chambre|hôtel|médecin|restaurant|plat|adresse"
    "|numéro|raison|paiement|titre|nom|quantité|nouveau|de|vers",
)
_ZH_WORDS = (
    "取消|更改|移动|添加|要|询问|预订|了解|查明|支付|锁定|解锁|设置|得到"
    "|提出异议|改期|续订|替换|订购|提交|递交|撤回|申诉|终止|发送|购买"
    "|退回|更换|打开|关闭|报告|检查|创建|删除|更新",
    "预订|预约|订单|账户|卡|预约|就诊|理赔|保单|日期|日子"
    "|到达|时间|金额|晚数|人数|房间|酒店|医生|餐厅|菜品|地址"
    "|号码|原因|付款|标题|姓名|数量|新|从|到",
)
_TABLES = {"German": _DE_WORDS, "Spanish": _ES_WORDS, "French": _FR_WORDS, "Chinese": _ZH_WORDS}

VERBS: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(_ENGLISH_VERBS, verbs.split("|"), strict=True)) for language, (verbs, _) in _TABLES.items()
}
"""By a language's name and English verb."""
NOUNS: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(_ENGLISH_NOUNS, nouns.split("|"), strict=True)) for language, (_, nouns) in _TABLES.items()
}
"""By a language's name and English noun."""
