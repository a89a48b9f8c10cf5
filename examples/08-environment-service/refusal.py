"""What a client is told when it asks for something that cannot be done."""


class Refusal(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
