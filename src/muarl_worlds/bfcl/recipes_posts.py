"""What users want done with posts (TwitterAPI)."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import plain
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes import asked, drawn, recipe, slot
from muarl_worlds.bfcl.recipes_files import FILES, FOLDER, QUOTABLE, QUOTED, SENTENCE, WORD, reads
from muarl_worlds.bfcl.recipes_people import HANDLE, PASSWORD, TEXT

POSTS = "TwitterAPI"


def _about(d: Any) -> list[str]:
    """Subjects of one post each, which the user has not shared."""
    state = d.tables[POSTS]
    done = plain(state.retweets).get(state.username, ())
    texts = {number: state.tweets[number].content.lower() for number in state.tweets}
    return [s for s in d.few(pools.SUBJECTS) if [n not in done for n, text in texts.items() if s in text] == [True]]


def _strangers(d: Any) -> list[str]:
    state = d.tables[POSTS]
    return [h for h in pools.HANDLES if h not in (*state.following_list, state.username)]


TAG = slot("tag", r"#\w+", lambda d: d.few(pools.TAGS))
COMMENT = slot("comment", QUOTED, lambda d: pools.TEXTS)
ABOUT = drawn(WORD, _about)
POST = asked(
    TEXT,
    "What should the post say?",
    'It should say "{}".',
    'The post is "{}".',
    guess=("A new post", "Hello everyone"),
)
REPLY = asked(
    TEXT, "What should the comment say?", 'It should say "{}".', 'Comment "{}".', guess=("Nice", "Great post")
)


@recipe(
    POSTS, 'post "{text}" with the tag {tag}', 'publish a post that says "{text}", tagged {tag}',
    "post something with the tag {tag}", "write a post tagged {tag}", slots=(POST, TAG), needs="post_login", open=True,
)  # fmt: skip
def post_write(it: Plan) -> None:
    it.post = it.do("post_tweet", content=it.text, tags=[it.tag]).id


@recipe(
    POSTS, 'post "{text}" and comment "{comment}" on it yourself',
    'publish "{text}" and put the comment "{comment}" right under it', slots=(SENTENCE, COMMENT), needs="post_login",
    open=True,
)  # fmt: skip
def post_discuss(it: Plan) -> None:
    it.post = it.do("post_tweet", content=it.text).id
    it.do("comment", tweet_id=it.post, comment_content=it.comment)


@recipe(
    (FILES, POSTS), "post what {file} in {folder} says, word for word",
    "read {file} in {folder} and publish its exact text as a post", slots=(QUOTABLE, FOLDER), needs="post_login",
    weight=2.0,
)  # fmt: skip
def post_file(it: Plan) -> None:
    it.post = it.do("post_tweet", content=reads(it)).id


@recipe(
    POSTS, "mention @{handle} in the post you just made", "add a mention of @{handle} to that new post",
    slots=(HANDLE,), when=lambda d: "post" in d.user, needs="post_login", narrow=True, weight=2.0,
)  # fmt: skip
def post_mention(it: Plan) -> None:
    it.do("mention", tweet_id=it.post, mentioned_usernames=["@" + it.handle])


@recipe(
    POSTS, "retweet the post about the {word}", "look for the post about the {word} and retweet it",
    "share the post on the {word} again", slots=(ABOUT,), needs="post_login", tiny=True,
)  # fmt: skip
def post_retweet(it: Plan) -> None:
    it.do("retweet", tweet_id=it.look("search_tweets", keyword=it.word)[0].id)


@recipe(
    POSTS, 'comment "{text}" on the post about the {word}',
    'leave the comment "{text}" under the post about the {word}', "comment on the post about the {word}",
    "leave a comment under the post about the {word}", slots=(ABOUT, REPLY), needs="post_login", open=True,
)  # fmt: skip
def post_reply(it: Plan) -> None:
    found = it.look("search_tweets", keyword=it.word)
    it.do("comment", tweet_id=found[0].id, comment_content=it.text)


@recipe(
    POSTS, "follow {handle}", "start following {handle}", slots=(drawn(HANDLE, _strangers),), needs="post_login",
    narrow=True,
)  # fmt: skip
def post_follow(it: Plan) -> None:
    it.do("follow_user", username_to_follow=it.handle)


@recipe(
    POSTS, "unfollow {handle}", "stop following {handle}",
    slots=(drawn(HANDLE, lambda d: d.tables[POSTS].following_list),), needs="post_login", narrow=True,
)  # fmt: skip
def post_unfollow(it: Plan) -> None:
    it.do("unfollow_user", username_to_unfollow=it.handle)


@recipe(
    POSTS, 'log in to my posting account {handle} with the password "{password}"',
    'sign me in for posting as {handle}, password "{password}"',
    slots=(drawn(HANDLE, lambda d: d.tables[POSTS].username), drawn(PASSWORD, lambda d: d.tables[POSTS].password)),
)  # fmt: skip
def post_login(it: Plan) -> None:
    it.do("authenticate_twitter", username=it.handle, password=it.password)
