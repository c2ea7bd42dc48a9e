"""TwitterAPI in both revisions."""

from __future__ import annotations

import pytest

from muarl.domains.tooling import tools_of
from muarl_worlds.bfcl.posting import REVISIONS
from support.bfcl import answer

TOOLS = {
    "authenticate_twitter", "posting_get_login_status", "post_tweet", "retweet", "comment", "mention", "follow_user",
    "list_all_following", "unfollow_user", "get_tweet", "get_user_tweets", "search_tweets", "get_tweet_comments",
    "get_user_stats",
}  # fmt: skip
TWEET = {"id": 0, "username": "ann", "content": "Hello World", "tags": ["#Hi"], "mentions": ["@bob"]}


@pytest.fixture(params=["v3", "v4"])
def revision(request):
    return request.param


def loaded(revision, **config):
    made = REVISIONS[revision]()
    made.load(config)
    return made


@pytest.fixture
def api(revision):
    return loaded(
        revision, username="ann", password="pw", authenticated=True, tweets={"0": dict(TWEET)}, tweet_counter=1
    )


def logged_out(doing):
    return {"error": f"User not authenticated. Please authenticate before {doing}."}


def test_the_default_state_and_logging_in(revision):
    assert set(tools_of(REVISIONS[revision])) == TOOLS
    api = loaded(revision)
    assert list(api.state().items()) == [
        ("username", "john"), ("password", "john123"), ("authenticated", False), ("tweets", {}), ("comments", {}),
        ("retweets", {}), ("following_list", ["alice", "bob"]), ("tweet_counter", 0),
    ]  # fmt: skip
    assert api.post_tweet("x") == logged_out("posting")
    assert api.retweet(0) == logged_out("retweeting")
    assert api.follow_user("x") == logged_out("following")
    assert api.unfollow_user("x") == logged_out("unfollowing")
    assert api.list_all_following() == logged_out("listing following")
    assert api.authenticate_twitter("john", "no") == {"authentication_status": False}
    assert api.posting_get_login_status() == {"login_status": False}
    assert api.authenticate_twitter("john", "john123") == {"authentication_status": True}
    assert api.posting_get_login_status() == {"login_status": True}


def test_what_differs_between_revisions():
    old, new = loaded("v3"), loaded("v4")
    assert answer(old, "comment", 0, "x") == "Error during execution: exceptions must derive from BaseException"
    assert new.comment(0, "x") == logged_out("commenting")
    for one in (old, new):
        one.authenticate_twitter("john", "john123")
    assert answer(old, "list_all_following") == "['alice', 'bob']"
    assert answer(new, "list_all_following") == '{"following_list": ["alice", "bob"]}'


def test_posting(api):
    assert api.post_tweet("hi", ["#a"], mentions=["@b"]) == {
        "id": 1, "username": "ann", "content": "hi", "tags": ["#a"], "mentions": ["@b"],
    }  # fmt: skip
    assert api.post_tweet("ho") == {"id": 2, "username": "ann", "content": "ho", "tags": [], "mentions": []}
    assert api.tweet_counter == 3 and list(api.tweets) == [0, 1, 2]
    assert api.get_tweet(1)["content"] == "hi" and api.get_tweet(0) == TWEET
    assert api.get_tweet("0") == {"error": "Tweet with ID 0 not found."}
    assert api.get_tweet(True)["content"] == "hi"
    assert answer(api, "get_tweet", [0]) == "Error during execution: unhashable type: 'list'"
    assert api.post_tweet("x", None)["tags"] is None


def test_retweets_and_comments(api):
    assert api.retweet(9) == {"error": "Tweet with ID 9 not found."}
    assert api.retweet(0) == {"retweet_status": "Successfully retweeted"}
    assert api.retweet(0) == {"retweet_status": "Already retweeted"}
    assert api.retweets == {"ann": [0]}
    assert api.get_tweet_comments(0) == []
    assert api.comment(0, "nice") == {"comment_status": "Comment added successfully"}
    assert api.get_tweet_comments(0) == [{"username": "ann", "content": "nice"}]
    assert api.get_tweet_comments(5) == {"error": "Tweet with ID 5 not found."}
    assert api.get_user_stats("ann") == {"tweet_count": 1, "following_count": 2, "retweet_count": 1}
    assert api.get_user_stats("bob") == {"tweet_count": 0, "following_count": 0, "retweet_count": 0}


def test_a_scenarios_comments_are_never_found(revision):
    api = loaded(revision, tweets={"0": dict(TWEET)}, comments={"0": [{"username": "b", "content": "c"}]})
    assert api.get_tweet_comments(0) == [] and list(api.comments) == ["0"]


def test_following(api):
    assert api.follow_user("bob") == {"follow_status": False}
    assert api.follow_user("eve") == {"follow_status": True}
    assert api.unfollow_user("alice") == {"unfollow_status": True}
    assert api.unfollow_user("alice") == {"unfollow_status": False}
    assert api.following_list == ["bob", "eve"]


def test_searching(api):
    api.post_tweet("other", ["#B"])
    assert api.search_tweets("WORLD") == [TWEET]
    assert api.search_tweets("#b") == [api.tweets[1]]
    assert api.search_tweets("#") == []
    assert api.get_user_tweets("ann") == [TWEET, api.tweets[1]]
    assert answer(api, "search_tweets", 5) == "Error during execution: 'int' object has no attribute 'lower'"
    api.post_tweet(5)
    assert answer(api, "search_tweets", "x").endswith("'int' object has no attribute 'lower'")
    assert loaded("v4").search_tweets(5) == []


def test_mentioning_needs_no_login_and_changes_no_argument(api):
    api.authenticated = False
    assert api.mention(0, ["@c", "@d"]) == {"mention_status": "Users mentioned successfully"}
    assert api.mention(7, []) == {"error": "Tweet with ID 7 not found."}
    assert api.tweets[0]["mentions"] == ["@bob", "@c", "@d"]
    assert answer(api, "mention", 0, None) == "Error during execution: 'NoneType' object is not iterable"
    api.authenticated = True
    given = ["@x"]
    api.post_tweet("a", mentions=given)
    api.mention(1, ["@y"])
    assert given == ["@x"] and api.tweets[1]["mentions"] == ["@x", "@y"]


def test_tweets_without_mentions_share_one_list_within_an_object_and_nowhere_else(api, revision):
    api.post_tweet("a")
    api.post_tweet("b", mentions=[])
    api.mention(1, ["@x"])
    assert api.post_tweet("c")["mentions"] == ["@x"] and api.tweets[2]["mentions"] == []
    twin = api.copy()
    twin.mention(3, ["@y"])
    assert twin.tweets[1]["mentions"] == twin.post_tweet("d")["mentions"] == ["@x", "@y"]
    assert api.tweets[1]["mentions"] == api.post_tweet("d")["mentions"] == ["@x"]
    other = loaded(revision, authenticated=True)
    assert other.post_tweet("a")["mentions"] == []


def test_python_speaks_of_upstreams_class(api):
    assert answer(api, "post_tweet") == (
        "Error during execution: TwitterAPI.post_tweet() missing 1 required positional argument: 'content'"
    )
    assert answer(api, "comment", 0) == (
        "Error during execution: TwitterAPI.comment() missing 1 required positional argument: 'comment_content'"
    )


def test_a_copy_and_a_scenario_share_nothing_that_changes(revision):
    config = {"tweets": {"0": dict(TWEET)}, "following_list": ["x"], "authenticated": True, "retweets": {"john": [0]}}
    api = loaded(revision, **config)
    twin = api.copy()
    assert twin.state() == api.state() and list(twin.state()) == list(api.state())
    api.mention(0, ["@z"])
    api.follow_user("y")
    api.comment(0, "c")
    assert config["tweets"]["0"]["mentions"] == TWEET["mentions"] == twin.tweets[0]["mentions"] == ["@bob"]
    assert config["following_list"] == twin.following_list == ["x"] and twin.comments == {}
