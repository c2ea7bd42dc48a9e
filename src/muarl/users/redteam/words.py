# ruff: noqa: E501 (tables)
"""Words that services have in common, in the languages that users may write: what is to be done, and to what."""

from __future__ import annotations

from collections.abc import Mapping

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

_DE = (
    "stornieren|ändern|verschieben|hinzufügen|haben|anfragen|buchen|wissen|herausfinden|bezahlen|sperren|entsperren|festlegen|bekommen"
    "|beanstanden|verlegen|erneuern|tauschen|bestellen|einreichen|abgeben|zurückziehen|Einspruch einlegen|beenden|senden|kaufen"
    "|zurückgeben|umtauschen|öffnen|schließen|melden|prüfen|anlegen|löschen|aktualisieren",
    "Buchung|Reservierung|Bestellung|Konto|Karte|Termin|Termin|Schadensfall|Police|Datum|Tag"
    "|Anreise|Uhrzeit|Betrag|Nächte|Personen|Zimmer|Hotel|Arzt|Restaurant|Gericht|Adresse"
    "|Nummer|Grund|Zahlung|Titel|Name|Menge|neu|von|nach",
)
_ES = (
    "cancelar|cambiar|mover|añadir|tener|pedir|reservar|saber|averiguar|pagar|bloquear|desbloquear|fijar|obtener"
    "|reclamar|aplazar|renovar|sustituir|encargar|presentar|entregar|retirar|apelar|terminar|enviar|comprar"
    "|devolver|cambiar por otro|abrir|cerrar|comunicar|comprobar|crear|borrar|actualizar",
    "reserva|reserva|pedido|cuenta|tarjeta|cita|visita|siniestro|póliza|fecha|día"
    "|llegada|hora|importe|noches|personas|habitación|hotel|médico|restaurante|plato|dirección"
    "|número|motivo|pago|título|nombre|cantidad|nuevo|desde|a",
)
_FR = (
    "annuler|modifier|déplacer|ajouter|avoir|demander|réserver|savoir|trouver|payer|bloquer|débloquer|fixer|obtenir"
    "|contester|reporter|renouveler|remplacer|commander|déposer|remettre|retirer|faire appel|terminer|envoyer|acheter"
    "|retourner|échanger|ouvrir|fermer|signaler|vérifier|créer|supprimer|mettre à jour",
    "réservation|réservation|commande|compte|carte|rendez-vous|visite|sinistre|contrat|date|jour"
    "|arrivée|heure|montant|nuits|personnes|chambre|hôtel|médecin|restaurant|plat|adresse"
    "|numéro|raison|paiement|titre|nom|quantité|nouveau|de|vers",
)
_ZH = (
    "取消|更改|移动|添加|要|询问|预订|了解|查明|支付|锁定|解锁|设置|得到"
    "|提出异议|改期|续订|替换|订购|提交|递交|撤回|申诉|终止|发送|购买"
    "|退回|更换|打开|关闭|报告|检查|创建|删除|更新",
    "预订|预约|订单|账户|卡|预约|就诊|理赔|保单|日期|日子"
    "|到达|时间|金额|晚数|人数|房间|酒店|医生|餐厅|菜品|地址"
    "|号码|原因|付款|标题|姓名|数量|新|从|到",
)
_TABLES = {"German": _DE, "Spanish": _ES, "French": _FR, "Chinese": _ZH}

VERBS: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(_ENGLISH_VERBS, verbs.split("|"), strict=True)) for language, (verbs, _) in _TABLES.items()
}
"""By a language's name and English verb."""
NOUNS: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(_ENGLISH_NOUNS, nouns.split("|"), strict=True)) for language, (_, nouns) in _TABLES.items()
}
"""By a language's name and English noun."""
