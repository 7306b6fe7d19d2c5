"""The document of a form definition."""

from storage.events import Instant, JsonText, Model


class FormDefinition(Model):
    """What a frontend needs to draw a form: any JSON, under the id that cards name. `updated_at` in ms since 1970."""

    space: str
    form_id: str
    definition: JsonText
    updated_at: Instant = 0
