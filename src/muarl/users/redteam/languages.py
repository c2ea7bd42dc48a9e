# ruff: noqa: E501 (tables)
"""Four languages that callers may write instead of English: their words, and what they hear in an agent's.

Facts (ids, names, numbers, dates, products and their options) stay as the records have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """``native``: a pattern that shows that a text is in it. ``hears``: patterns of agents' words, each with English
    that means the same to the domains' hearing. ``wishes``: by kind of request; ``slots``: by slot, with braces for the
    value; ``values``: words for values that are no names. ``phrases``: whole sentences."""

    name: str
    native: str
    hears: Sequence[tuple[str, str]]
    wishes: Mapping[str, str]
    slots: Mapping[str, str]
    values: Mapping[str, str]
    phrases: Mapping[str, Sequence[str]]


_DE = Language(
    "German",
    r"\b(ich|Sie|Ihre?[nm]?|nicht|und|der|die|das|bitte|möchten|wird)\b",
    (
        (r"soll ich|möchten sie (das|dies|fortfahren)|bestätig|einverstanden|ist das (richtig|so richtig|korrekt)", "Shall I go ahead?"),
        (r"postleitzahl|\bplz\b|\bname[n]?\b|kundennummer|benutzer-?id|telefonnummer|rufnummer|geburtsdatum|identi", "May I have your user id, phone number, name and zip code?"),
        (r"welche (bestellung|bestellnummer)|bestellnummer\?|nummer (der|ihrer) bestellung", "Which order is it?"),
        (r"welche (buchung|reservierung)|(buchungs|reservierungs)(nummer|code)", "Which reservation is it?"),
        (r"welche[nsr]? (artikel|produkt|gegenstand)", "Which item is it?"),
        (r"welche (variante|option|farbe|größe)|welches material", "Which option would you like?"),
        (r"grund\b|warum|weshalb", "What is the reason?"),
        (r"zahlungs(mittel|methode|art|weise)[^.]*\?|womit[^.]*zahlen", "Which payment method should I use?"),
        (r"(neue|welche) (liefer)?adresse|adresse\?", "What is the new address?"),
        (r"wie ?viele? (gb|gigabyte|daten|datenvolumen)", "How much data would you like to add?"),
        (r"welches? (datum|tag)|welchen tag|neues datum", "Which date would you like?"),
        (r"wie viele (koffer|gepäck)", "How many bags in total?"),
        (r"welche (klasse|kabine)", "Which cabin would you like?"),
        (r"neue[rn]? (passagier|fluggast|reisende)", "Who is the new passenger?"),
        (r"nicht (verfügbar|lieferbar)|ausverkauft", "That is not available."),
        (r"(kann|können|darf|dürfen)[^.?]* nicht|nicht (möglich|erlaubt)|leider", "I cannot do that."),
        (r"erledigt|wurde (storniert|geändert|angepasst|aktualisiert)|sonst noch|noch etwas", "Done. Anything else?"),
        (r"weitergeleitet|verbinde sie|mitarbeiter", "You are being transferred to a human agent."),
    ),
    {
        "cancel": "stornieren: {}", "return": "zurückgeben: {}", "exchange": "umtauschen: {}",
        "modify_items": "in der Bestellung ändern: {}", "modify_payment": "anders bezahlen: {}",
        "modify_address": "an eine andere Adresse schicken lassen: {}", "flights": "den Flug umbuchen: {}",
        "cabin": "die Kabine wechseln: {}", "bags": "Gepäck dazubuchen: {}", "passenger": "den Passagier ändern: {}",
        "refuel": "Datenvolumen dazubuchen: {}", "roaming_on": "Roaming einschalten{}",
        "roaming_off": "Roaming ausschalten{}", "suspend": "meinen Anschluss sperren lassen{}",
    },
    {
        "order_id": "Bestellung {}", "items": "Artikel „{}“", "to": "gewünscht: „{}“", "payment": "Zahlung mit {}",
        "reason": "Grund: {}", "address": "Adresse: {}", "described": "die mit „{}“ darin, die Nummer weiß ich nicht",
        "reservation_id": "Reservierung {}", "flight": "Flug {}", "date": "am {}", "cabin": "Kabine {}",
        "bags": "insgesamt {} Gepäckstücke", "who": "Passagier {}", "passenger": "neuer Passagier: {}", "amount": "{} GB",
    },
    {
        "credit_card": "Kreditkarte", "paypal": "PayPal", "gift_card": "Geschenkkarte", "no longer needed": "nicht mehr benötigt",
        "ordered by mistake": "versehentlich bestellt", "change of plan": "Planänderung", "health": "Krankheit",
        "weather": "schlechtes Wetter", "cancelled flight": "die Fluggesellschaft hat den Flug gestrichen",
        "lost phone": "Telefon verloren", "long trip": "lange Reise", "not needed now": "zurzeit nicht gebraucht",
        "economy": "Economy", "business": "Business", "basic_economy": "Basic Economy",
    },
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
        (r"(qué|cuál)[^?]*pedido|número de(l)? pedido", "Which order is it?"),
        (r"(qué|cuál)[^?]*reserva|(número|código) de (la )?reserva", "Which reservation is it?"),
        (r"(qué|cuál)[^?]*(artículo|producto)", "Which item is it?"),
        (r"(qué|cuál)[^?]*(opción|variante|color|tamaño|material)", "Which option would you like?"),
        (r"motivo|razón|por qué", "What is the reason?"),
        (r"(método|forma|medio) de pago[^.]*\?", "Which payment method should I use?"),
        (r"(nueva|qué|cuál)[^?]*dirección", "What is the new address?"),
        (r"cuántos (gb|gigas|datos)", "How much data would you like to add?"),
        (r"(qué|cuál)[^?]*(fecha|día)", "Which date would you like?"),
        (r"cuántas (maletas|piezas)", "How many bags in total?"),
        (r"(qué|cuál)[^?]*(clase|cabina)", "Which cabin would you like?"),
        (r"nuevo pasajero", "Who is the new passenger?"),
        (r"no (está |hay )?disponible|agotad", "That is not available."),
        (r"no (puedo|podemos|es posible|está permitido)|lamentablemente", "I cannot do that."),
        (r"\bhecho\b|ha sido|listo|algo más", "Done. Anything else?"),
        (r"transferi|un agente", "You are being transferred to a human agent."),
    ),
    {
        "cancel": "cancelar: {}", "return": "devolver: {}", "exchange": "cambiar por otro: {}",
        "modify_items": "modificar en el pedido: {}", "modify_payment": "pagar de otra manera: {}",
        "modify_address": "enviar a otra dirección: {}", "flights": "cambiar el vuelo: {}",
        "cabin": "cambiar de cabina: {}", "bags": "añadir equipaje: {}", "passenger": "cambiar el pasajero: {}",
        "refuel": "añadir datos: {}", "roaming_on": "activar el roaming{}", "roaming_off": "desactivar el roaming{}",
        "suspend": "suspender mi línea{}",
    },
    {
        "order_id": "pedido {}", "items": "artículo «{}»", "to": "lo quiero «{}»", "payment": "pago con {}",
        "reason": "motivo: {}", "address": "dirección: {}", "described": "el que lleva «{}», no recuerdo el número",
        "reservation_id": "reserva {}", "flight": "vuelo {}", "date": "el {}", "cabin": "cabina {}",
        "bags": "{} maletas en total", "who": "pasajero {}", "passenger": "nuevo pasajero: {}", "amount": "{} GB",
    },
    {
        "credit_card": "tarjeta de crédito", "paypal": "PayPal", "gift_card": "tarjeta regalo",
        "no longer needed": "ya no lo necesito", "ordered by mistake": "lo pedí por error",
        "change of plan": "cambio de planes", "health": "enfermedad", "weather": "mal tiempo",
        "cancelled flight": "la aerolínea canceló el vuelo", "lost phone": "perdí el teléfono",
        "long trip": "un viaje largo", "not needed now": "ahora no la necesito", "economy": "Economy",
        "business": "Business", "basic_economy": "Basic Economy",
    },
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
        (r"quelle[^?]*commande|numéro de (la |votre )?commande", "Which order is it?"),
        (r"quelle[^?]*réservation|(numéro|code) de (la |votre )?réservation", "Which reservation is it?"),
        (r"quel(le)?s? (article|produit)", "Which item is it?"),
        (r"quel(le)?s? (option|variante|couleur|taille|matière)", "Which option would you like?"),
        (r"raison|motif|pourquoi", "What is the reason?"),
        (r"(moyen|mode|méthode) de paiement[^.]*\?", "Which payment method should I use?"),
        (r"(nouvelle|quelle)[^?]*adresse", "What is the new address?"),
        (r"combien de (go|gb|données)", "How much data would you like to add?"),
        (r"quel(le)?s? (date|jour)", "Which date would you like?"),
        (r"combien de (bagages|valises)", "How many bags in total?"),
        (r"quelle (classe|cabine)", "Which cabin would you like?"),
        (r"nouveau passager", "Who is the new passenger?"),
        (r"pas disponible|indisponible|épuisé", "That is not available."),
        (r"(ne peux|ne pouvons|ne puis|n'est) pas|impossible|malheureusement", "I cannot do that."),
        (r"c'est fait|a été|autre chose|terminé", "Done. Anything else?"),
        (r"transfér|un agent humain|un conseiller", "You are being transferred to a human agent."),
    ),
    {
        "cancel": "annuler : {}", "return": "retourner : {}", "exchange": "échanger : {}",
        "modify_items": "modifier dans la commande : {}", "modify_payment": "payer autrement : {}",
        "modify_address": "faire livrer à une autre adresse : {}", "flights": "changer de vol : {}",
        "cabin": "changer de cabine : {}", "bags": "ajouter des bagages : {}", "passenger": "changer le passager : {}",
        "refuel": "ajouter des données : {}", "roaming_on": "activer l'itinérance (roaming){}",
        "roaming_off": "désactiver l'itinérance (roaming){}", "suspend": "suspendre ma ligne{}",
    },
    {
        "order_id": "commande {}", "items": "article « {} »", "to": "je le veux « {} »", "payment": "paiement par {}",
        "reason": "raison : {}", "address": "adresse : {}", "described": "celle avec « {} », j'ai oublié le numéro",
        "reservation_id": "réservation {}", "flight": "vol {}", "date": "le {}", "cabin": "cabine {}",
        "bags": "{} bagages en tout", "who": "passager {}", "passenger": "nouveau passager : {}", "amount": "{} GB",
    },
    {
        "credit_card": "carte de crédit", "paypal": "PayPal", "gift_card": "carte cadeau",
        "no longer needed": "je n'en ai plus besoin", "ordered by mistake": "commandé par erreur",
        "change of plan": "changement de programme", "health": "maladie", "weather": "mauvais temps",
        "cancelled flight": "la compagnie a annulé le vol", "lost phone": "téléphone perdu",
        "long trip": "un long voyage", "not needed now": "pas besoin en ce moment", "economy": "Economy",
        "business": "Business", "basic_economy": "Basic Economy",
    },
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
        (r"哪个订单|哪一个订单|订单号", "Which order is it?"),
        (r"哪个预订|预订(号|编号)|订位", "Which reservation is it?"),
        (r"哪(个|件|款)(商品|产品|物品)", "Which item is it?"),
        (r"哪(个|种)(选项|颜色|尺寸|材质|款式)", "Which option would you like?"),
        (r"原因|为什么|理由", "What is the reason?"),
        (r"(哪种|什么)(支付|付款)|(支付|付款)方式[^。]*[？?]", "Which payment method should I use?"),
        (r"(新|什么)(的)?(收货)?地址", "What is the new address?"),
        (r"多少(gb|流量|数据)", "How much data would you like to add?"),
        (r"(哪天|哪一天|什么日期|新日期)", "Which date would you like?"),
        (r"(几件|多少件)行李", "How many bags in total?"),
        (r"(哪个|什么)舱", "Which cabin would you like?"),
        (r"新(的)?(乘客|旅客)", "Who is the new passenger?"),
        (r"缺货|售罄|没有库存|不可用", "That is not available."),
        (r"无法|不能|不可以|抱歉", "I cannot do that."),
        (r"已(经)?(完成|取消|更改|修改|处理)|还有(什么|其他)", "Done. Anything else?"),
        (r"转接|人工", "You are being transferred to a human agent."),
    ),
    {
        "cancel": "取消:{}", "return": "退货:{}", "exchange": "换货:{}", "modify_items": "修改订单里的商品:{}",
        "modify_payment": "更换付款方式:{}", "modify_address": "改寄到别的地址:{}", "flights": "改签航班:{}",
        "cabin": "更换舱位:{}", "bags": "增加行李:{}", "passenger": "更换乘客:{}", "refuel": "增加流量:{}",
        "roaming_on": "开通漫游(roaming){}", "roaming_off": "关闭漫游(roaming){}", "suspend": "暂停我的线路{}",
    },
    {
        "order_id": "订单 {}", "items": "商品「{}」", "to": "要「{}」的", "payment": "用{}付款", "reason": "原因:{}",
        "address": "地址:{}", "described": "里面有「{}」的那个,号码我不记得", "reservation_id": "预订 {}", "flight": "航班 {}",
        "date": "日期 {}", "cabin": "舱位 {}", "bags": "一共 {} 件行李", "who": "乘客 {}", "passenger": "新乘客:{}",
        "amount": "{} GB",
    },
    {
        "credit_card": "信用卡", "paypal": "PayPal", "gift_card": "礼品卡", "no longer needed": "不再需要",
        "ordered by mistake": "误下单", "change of plan": "计划有变", "health": "生病", "weather": "天气不好",
        "cancelled flight": "航空公司取消了航班", "lost phone": "手机丢了", "long trip": "长途旅行",
        "not needed now": "暂时不需要", "economy": "经济舱 (economy)", "business": "商务舱 (business)",
        "basic_economy": "基础经济舱 (basic economy)",
    },
    {
        "opening": ("您好,我想{}。", "你好!我要{}。"), "also": ("另外我还想{}。",), "again": ("我想{}。",),
        "wrong": ("不对,我想{}。",), "change": ("还是改成:{}。", "我改主意了:{}。"), "yes": ("是的。", "对,请办理。", "好的。"),
        "drop": ("算了,保持原样。",), "number": ("我的号码是 {}。",), "user_id": ("我的 ID 是 {}。",), "identity": ("我是 {}。", "我的名字是 {}。"), "tell": ("{}。",),
        "end": ("没有了,谢谢。",), "ok": ("好。",), "gives_up": ("这样办不成。",), "english": ("对不起, my English is bad. ",),
    },
)  # fmt: skip

LANGUAGES: Mapping[str, Language] = {"de": _DE, "es": _ES, "fr": _FR, "zh": _ZH}
"""By the code that stands in a task's agenda."""
