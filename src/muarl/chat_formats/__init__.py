"""Chat formats: messages to token ids and back, for every family of models.

``choice.chat_format`` opens the one of a checkpoint, ``base.ChatFormat`` is what all of them do, and ``families`` says
which there are.
"""
