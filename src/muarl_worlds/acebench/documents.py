"""The tools' descriptions in Chinese, for tasks of our own; the English ones are the methods' docstrings.

In the form of docstrings, by class and method.
"""

from __future__ import annotations

from collections.abc import Mapping

ZH: Mapping[str, Mapping[str, str]] = {
    "BaseApi": {
        "turn_on_wifi": "打开手机的WiFi。发短信和登录外卖平台都需要WiFi。",
        "login_device": "登录手机。登录之后才能使用短信和提醒。",
    },
    "MessageApi": {
        "send_message": """由一个人向另一个人发一条短信。短信会占用收件箱的一个位置，收件箱可能已满。

        Args:
            sender_name: 发短信的人的姓名，例如 'Grace'。
            receiver_name: 收短信的人的姓名，例如 'Frank'。
            message: 短信的内容。
        """,
        "delete_message": """删除收件箱里的一条短信。

        Args:
            message_id: 短信的编号。
        """,
        "view_messages_between_users": """显示收件箱里一个人发给另一个人的全部短信。

        Args:
            sender_name: 发短信的人的姓名。
            receiver_name: 收短信的人的姓名。
        """,
        "search_messages": """查找某人发出或收到、内容包含某个词的短信，不区分大小写。

        Args:
            user_name: 这个人的姓名。
            keyword: 内容中必须包含的词。
        """,
        "get_all_message_times_with_ids": "显示收件箱里每条短信的编号和日期。",
        "get_latest_message_id": "给出收件箱里最新一条短信的编号。",
        "get_earliest_message_id": "给出收件箱里最早一条短信的编号。",
    },
    "ReminderApi": {
        "view_reminder_by_title": """显示标题完全相同的提醒。

        Args:
            title: 提醒的标题。
        """,
        "add_reminder": """在还有空位时添加一条提醒。

        Args:
            title: 提醒的标题。
            description: 需要记住的事情。
            time: 提醒的时间，写成 YYYY-MM-DD HH:MM，例如 '2024-07-15 09:30'。
        """,
        "delete_reminder": """删除一条提醒。

        Args:
            reminder_id: 提醒在列表中的编号。
        """,
        "view_all_reminders": "显示全部提醒：标题、描述、时间以及是否已通知用户。",
        "mark_as_notified": """记录某条提醒已经通知过用户。

        Args:
            reminder_id: 提醒在列表中的编号。
        """,
        "search_reminders": """查找标题或描述中包含某个词的提醒，不区分大小写。

        Args:
            keyword: 必须包含的词。
        """,
    },
    "FoodPlatform": {
        "login_food_platform": """让一位用户登录外卖平台。必须先打开WiFi。

        Args:
            username: 用户名，例如 'Eve'。
            password: 用户的密码。
        """,
        "view_logged_in_users": "显示已登录外卖平台的用户。",
        "check_balance": """查询用户在外卖平台上的余额，单位为元。

        Args:
            user_name: 用户名。
        """,
        "add_food_delivery_order": """在一个商家点外卖。用户必须已登录外卖平台，并且余额足够。

        Args:
            username: 下单并付款的用户名。
            merchant_name: 商家名称。
            items: 所点的商品，每件包含菜单上的商品名称 product 和数量 quantity。
        """,
        "get_products": """显示商家的菜单和价格，单位为元。

        Args:
            merchant_name: 商家名称。
        """,
        "view_orders": """显示用户的全部订单。

        Args:
            user_name: 用户名。
        """,
        "search_orders": """查找商家名称或商品名称包含某个词的订单，不区分大小写。

        Args:
            keyword: 名称中必须包含的词。
        """,
    },
    "Travel": {
        "get_flight_details": """显示航班的时间、价格和剩余座位。

        Args:
            origin: 出发城市，不填则不限。
            destination: 到达城市，不填则不限。
        """,
        "get_user_details": """显示旅客的姓名、余额和会员等级。

        Args:
            user_id: 旅客编号，例如 'user1'。
            password: 旅客的密码。
        """,
        "get_reservation_details": """显示一个预订，或一位旅客的全部预订，以及各自的航班。

        Args:
            reservation_id: 预订编号，例如 'res_1'。如果填写，则不看旅客编号。
            user_id: 旅客编号。
        """,
        "authenticate_user": """核对旅客的密码，并显示其完整资料。

        Args:
            user_id: 旅客编号。
            password: 旅客的密码。
        """,
        "get_baggage_allowance": """给出可以免费托运的行李件数。

        Args:
            membership_level: 'regular'、'silver' 或 'gold'。
            cabin_class: '经济舱' 或 '商务舱'。
        """,
        "find_transfer_flights": """查找需要中转一次的航班组合，第一班在第二班起飞之前到达。

        Args:
            origin_city: 出发城市。
            transfer_city: 中转城市。
            destination_city: 到达城市。
        """,
        "calculate_baggage_fee": """计算超出免费件数的行李费用，单位为元。

        Args:
            membership_level: 'regular'、'silver' 或 'gold'。
            cabin_class: '经济舱' 或 '商务舱'。
            baggage_count: 行李件数。
        """,
        "update_balance": """判断一份资料的余额是否够付一笔款。改变的只是传入的资料，不是任何人的账户。

        Args:
            user: 资料，含 cash_balance 和 bank_balance。
            payment_method: 'cash' 或 'bank'。
            amount: 增加的金额，单位为元；付款则小于零。
        """,
        "reserve_flight": """预订航班的一个座位，并支付机票和行李费用。

        Args:
            user_id: 旅客编号。
            password: 旅客的密码。
            flight_no: 航班号，例如 'CA1234'。
            cabin: '经济舱' 或 '商务舱'。
            payment_method: 'cash' 或 'bank'。
            baggage_count: 托运行李的件数。
        """,
        "modify_flight": """更改预订：换成相同城市之间的另一航班、更换舱位、增加行李。

        Args:
            user_id: 旅客编号。
            reservation_id: 预订编号。
            new_flight_no: 新的航班号，不填则不变。
            new_cabin: '经济舱' 或 '商务舱'，不填则不变。
            add_baggage: 增加的行李件数。
            new_payment_method: 'cash' 或 'bank'，不填则沿用预订时的支付方式。
        """,
        "cancel_reservation": """取消预订。退款多少取决于原因以及离起飞还有多久。

        Args:
            user_id: 旅客编号。
            reservation_id: 预订编号。
            reason: 取消的原因，几个字即可。
        """,
        "process_refund": """把退款加到一份资料的现金余额上。改变的只是传入的资料，不是任何人的账户。

        Args:
            user: 资料，含 user_name 和 cash_balance。
            amount: 退款金额，单位为元。
        """,
        "calculate_price_difference": """计算某航班更换舱位的差价，单位为元；小于零表示退款。

        Args:
            flight: 航班，含 economy_price 和 business_price。
            old_cabin: '经济舱' 或 '商务舱'。
            new_cabin: '经济舱' 或 '商务舱'。
        """,
    },
}
