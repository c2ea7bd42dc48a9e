"""What users want done with posts (TwitterAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots
from muarl.domains.bfcl.recipes_files import FILES, reads
from muarl.domains.bfcl.recipes_people import file_text, new_text
from muarl.domains.bfcl.scenes import limited

POSTS = "TwitterAPI"


def _draw_post(draw: Draw) -> Slots:
    return {"text": new_text(draw), "tag": draw.pick(limited(pools.TAGS, draw.size))}


def _post(slots: Slots, memory: Memory) -> Plan:
    made = yield "post_tweet", {"content": slots["text"], "tags": [slots["tag"]]}
    memory["post"] = made["id"]
    return NOTHING


def _draw_post_and_comment(draw: Draw) -> Slots:
    return {"text": pools.sentence(draw.rng), "comment": draw.pick(pools.TEXTS)}


def _post_and_comment(slots: Slots, memory: Memory) -> Plan:
    made = yield "post_tweet", {"content": slots["text"]}
    memory["post"] = made["id"]
    yield "comment", {"tweet_id": made["id"], "comment_content": slots["comment"]}
    return NOTHING


def _post_file(slots: Slots, memory: Memory) -> Plan:
    text = yield from reads(slots, memory)
    made = yield "post_tweet", {"content": text}
    memory["post"] = made["id"]
    return NOTHING


def _draw_last_post(draw: Draw) -> Slots:
    draw.pick([draw.memory["post"]] if "post" in draw.memory else [])
    return {"handle": draw.pick(pools.HANDLES)}


def _mention(slots: Slots, memory: Memory) -> Plan:
    yield "mention", {"tweet_id": memory["post"], "mentioned_usernames": ["@" + slots["handle"]]}
    return NOTHING


def _draw_about(draw: Draw) -> Slots:
    state = draw.state[POSTS]
    done = state["retweets"].get(state["username"], ())
    texts = {number: post["content"].lower() for number, post in state["tweets"].items()}
    words = [
        s
        for s in limited(pools.SUBJECTS, draw.size)
        if [n not in done for n, text in texts.items() if s in text] == [True]
    ]
    return {"word": draw.pick(words)}


def _retweet(slots: Slots, memory: Memory) -> Plan:
    found = yield "search_tweets", {"keyword": slots["word"]}
    yield "retweet", {"tweet_id": found[0]["id"]}
    return NOTHING


def _draw_reply(draw: Draw) -> Slots:
    return {**_draw_about(draw), "text": new_text(draw)}


def _reply(slots: Slots, memory: Memory) -> Plan:
    found = yield "search_tweets", {"keyword": slots["word"]}
    yield "comment", {"tweet_id": found[0]["id"], "comment_content": slots["text"]}
    return NOTHING


def _draw_follow(draw: Draw) -> Slots:
    state = draw.state[POSTS]
    taken = {*state["following_list"], state["username"]}
    return {"handle": draw.pick([h for h in pools.HANDLES if h not in taken])}


def _draw_unfollow(draw: Draw) -> Slots:
    return {"handle": draw.pick(draw.state[POSTS]["following_list"])}


def _follows(tool: str, argument: str) -> Any:
    def plan(slots: Slots, memory: Memory) -> Plan:
        yield tool, {argument: slots["handle"]}
        return NOTHING

    return plan


def _draw_post_login(draw: Draw) -> Slots:
    return {"handle": draw.state[POSTS]["username"], "password": draw.state[POSTS]["password"]}


def _post_login(slots: Slots, memory: Memory) -> Plan:
    yield "authenticate_twitter", {"username": slots["handle"], "password": slots["password"]}
    return NOTHING


_NO_POST = Missing(
    ("post something with the tag {tag}", "write a post tagged {tag}"),
    "What should the post say?",
    ('It should say "{text}".', 'The post is "{text}".'),
    ("A new post", "Hello everyone"),
)
_NO_REPLY = Missing(
    ("comment on the post about the {word}", "leave a comment under the post about the {word}"),
    "What should the comment say?",
    ('It should say "{text}".', 'Comment "{text}".'),
    ("Nice", "Great post"),
)

RECIPES = (
    Recipe(
        "post_write", (POSTS,), _draw_post, _post,
        ('post "{text}" with the tag {tag}', 'publish a post that says "{text}", tagged {tag}'),
        needs="post_login", open=True, missing={"text": _NO_POST},
    ),
    Recipe(
        "post_discuss", (POSTS,), _draw_post_and_comment, _post_and_comment,
        (
            'post "{text}" and comment "{comment}" on it yourself',
            'publish "{text}" and put the comment "{comment}" right under it',
        ),
        needs="post_login", open=True,
    ),
    Recipe(
        "post_file", (FILES, POSTS), file_text, _post_file,
        (
            "post what {file} in {folder} says, word for word",
            "read {file} in {folder} and publish its exact text as a post",
        ),
        needs="post_login", weight=2.0,
    ),
    Recipe(
        "post_mention", (POSTS,), _draw_last_post, _mention,
        ("mention @{handle} in the post you just made", "add a mention of @{handle} to that new post"),
        needs="post_login", narrow=True, weight=2.0,
    ),
    Recipe(
        "post_retweet", (POSTS,), _draw_about, _retweet,
        (
            "retweet the post about the {word}", "look for the post about the {word} and retweet it",
            "share the post on the {word} again",
        ),
        needs="post_login", tiny=True,
    ),
    Recipe(
        "post_reply", (POSTS,), _draw_reply, _reply,
        (
            'comment "{text}" on the post about the {word}',
            'leave the comment "{text}" under the post about the {word}',
        ),
        needs="post_login", open=True, missing={"text": _NO_REPLY},
    ),
    Recipe(
        "post_follow", (POSTS,), _draw_follow, _follows("follow_user", "username_to_follow"),
        ("follow {handle}", "start following {handle}"),
        needs="post_login", narrow=True,
    ),
    Recipe(
        "post_unfollow", (POSTS,), _draw_unfollow, _follows("unfollow_user", "username_to_unfollow"),
        ("unfollow {handle}", "stop following {handle}"),
        needs="post_login", narrow=True,
    ),
)  # fmt: skip

LOGINS = (
    Recipe(
        "post_login", (POSTS,), _draw_post_login, _post_login,
        (
            'log in to my posting account {handle} with the password "{password}"',
            'sign me in for posting as {handle}, password "{password}"',
        ),
    ),
)  # fmt: skip
