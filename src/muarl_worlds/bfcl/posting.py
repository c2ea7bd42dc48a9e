"""TwitterAPI: tweets of one user (BFCL posting_api)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import copied, named, twin

__all__ = ["REVISIONS", "TwitterAPI", "TwitterAPIV3"]

_NOBODY: list[str] = []
"""Stands for a list that was not given. It is never stored, and so stays empty."""


@named
class TwitterAPI(Api):
    """The v4 revision. ``tweets``: by ID. ``comments``: by ID, which a scenario writes as text, so that its own are
    never found. ``retweets``: the IDs that a user has retweeted, by the user's name."""

    name = "TwitterAPI"

    username: str
    password: str
    authenticated: bool
    tweets: dict[int, dict[str, Any]]
    comments: dict[Any, list[dict[str, Any]]]
    retweets: dict[str, list[int]]
    following_list: list[str]
    tweet_counter: int
    _mentions: list[str]

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        self.username = copied(config.get("username", "john"))
        self.password = copied(config.get("password", "john123"))
        self.authenticated = copied(config.get("authenticated", False))
        self.tweets = {int(key): copied(tweet) for key, tweet in config.get("tweets", {}).items()}
        self.comments = copied(config.get("comments", {}))
        self.retweets = copied(config.get("retweets", {}))
        self.following_list = copied(config["following_list"]) if "following_list" in config else ["alice", "bob"]
        self.tweet_counter = copied(config.get("tweet_counter", 0))
        # Upstream's tweets without mentions share one list, a default argument, which ``mention`` then fills for all
        # of them. Here it is one list per object.
        self._mentions = []

    def copy(self) -> Self:
        return twin(self)

    @tool(writes=True)
    def authenticate_twitter(self, username: str, password: str) -> dict[str, Any]:
        """Log in, which most of the tools here need.

        username: the user's name.
        password: the user's password.
        """
        if username == self.username and password == self.password:
            self.authenticated = True
            return {"authentication_status": True}
        return {"authentication_status": False}

    @tool
    def posting_get_login_status(self) -> dict[str, Any]:
        """Show whether the user is logged in."""
        return {"login_status": bool(self.authenticated)}

    @tool(writes=True)
    def post_tweet(self, content: str, tags: list[str] = _NOBODY, mentions: list[str] = _NOBODY) -> dict[str, Any]:
        """Post a tweet.

        content: the text.
        tags: its tags, each beginning with "#".
        mentions: the users it mentions, each beginning with "@".
        """
        if not self.authenticated:
            return _logged_out("posting")
        if mentions is _NOBODY:
            mentions = self._mentions
        elif type(mentions) is list:
            mentions = mentions.copy()  # ``mention`` must not change what the user holds
        tweet = {
            "id": self.tweet_counter,
            "username": self.username,
            "content": content,
            "tags": [] if tags is _NOBODY else tags,
            "mentions": mentions,
        }
        self.tweets[self.tweet_counter] = tweet
        self.tweet_counter += 1
        return tweet

    @tool(writes=True)
    def retweet(self, tweet_id: int) -> dict[str, Any]:
        """Retweet a tweet.

        tweet_id: the tweet's ID.
        """
        if not self.authenticated:
            return _logged_out("retweeting")
        if tweet_id not in self.tweets:
            return _not_found(tweet_id)
        own = self.retweets.setdefault(self.username, [])
        if tweet_id in own:
            return {"retweet_status": "Already retweeted"}
        own.append(tweet_id)
        return {"retweet_status": "Successfully retweeted"}

    @tool(writes=True)
    def comment(self, tweet_id: int, comment_content: str) -> dict[str, Any]:
        """Comment on a tweet.

        tweet_id: the tweet's ID.
        comment_content: the comment's text.
        """
        if not self.authenticated:
            return self._no_comment()
        if tweet_id not in self.tweets:
            return _not_found(tweet_id)
        self.comments.setdefault(tweet_id, []).append({"username": self.username, "content": comment_content})
        return {"comment_status": "Comment added successfully"}

    @tool(writes=True)
    def mention(self, tweet_id: int, mentioned_usernames: list[str]) -> dict[str, Any]:
        """Mention more users in a tweet. Needs no login.

        tweet_id: the tweet's ID.
        mentioned_usernames: the users, each beginning with "@".
        """
        if tweet_id not in self.tweets:
            return _not_found(tweet_id)
        self.tweets[tweet_id]["mentions"].extend(mentioned_usernames)
        return {"mention_status": "Users mentioned successfully"}

    @tool(writes=True)
    def follow_user(self, username_to_follow: str) -> dict[str, Any]:
        """Follow a user.

        username_to_follow: the user's name.
        """
        if not self.authenticated:
            return _logged_out("following")
        if username_to_follow in self.following_list:
            return {"follow_status": False}
        self.following_list.append(username_to_follow)
        return {"follow_status": True}

    @tool
    def list_all_following(self) -> Any:
        """List the users whom the user follows."""
        return self._following() if self.authenticated else _logged_out("listing following")

    @tool(writes=True)
    def unfollow_user(self, username_to_unfollow: str) -> dict[str, Any]:
        """Stop following a user.

        username_to_unfollow: the user's name.
        """
        if not self.authenticated:
            return _logged_out("unfollowing")
        if username_to_unfollow not in self.following_list:
            return {"unfollow_status": False}
        self.following_list.remove(username_to_unfollow)
        return {"unfollow_status": True}

    @tool
    def get_tweet(self, tweet_id: int) -> dict[str, Any]:
        """Show a tweet.

        tweet_id: the tweet's ID.
        """
        return self.tweets[tweet_id] if tweet_id in self.tweets else _not_found(tweet_id)

    @tool
    def get_user_tweets(self, username: str) -> list[dict[str, Any]]:
        """Show all tweets of a user.

        username: the user's name.
        """
        return [tweet for tweet in self.tweets.values() if tweet["username"] == username]

    @tool
    def search_tweets(self, keyword: str) -> list[dict[str, Any]]:
        """Find the tweets that contain a text or have it as a tag, in upper or lower case.

        keyword: the text, or the whole tag.
        """
        matching = []
        for tweet in self.tweets.values():
            wanted = keyword.lower()
            if wanted in tweet["content"].lower() or wanted in [tag.lower() for tag in tweet["tags"]]:
                matching.append(tweet)
        return matching

    @tool
    def get_tweet_comments(self, tweet_id: int) -> Any:
        """Show the comments on a tweet.

        tweet_id: the tweet's ID.
        """
        return self.comments.get(tweet_id, []) if tweet_id in self.tweets else _not_found(tweet_id)

    @tool
    def get_user_stats(self, username: str) -> dict[str, Any]:
        """Count a user's tweets and retweets and, of the own user, the users followed.

        username: the user's name.
        """
        return {
            "tweet_count": len(self.get_user_tweets(username)),
            "following_count": len(self.following_list) if username == self.username else 0,
            "retweet_count": len(self.retweets.get(username, [])),
        }

    def _no_comment(self) -> dict[str, Any]:
        """The answer to a comment without login."""
        return _logged_out("commenting")

    def _following(self) -> Any:
        return {"following_list": self.following_list}


@named
class TwitterAPIV3(TwitterAPI):
    """The v3 revision."""

    def _no_comment(self) -> dict[str, Any]:
        raise TypeError("exceptions must derive from BaseException")  # upstream raises the answer instead

    def _following(self) -> Any:
        return self.following_list


def _logged_out(doing: str) -> dict[str, Any]:
    return {"error": f"User not authenticated. Please authenticate before {doing}."}


def _not_found(tweet_id: Any) -> dict[str, Any]:
    return {"error": f"Tweet with ID {tweet_id} not found."}


REVISIONS: Mapping[Revision, type[Api]] = {"v3": TwitterAPIV3, "v4": TwitterAPI}
