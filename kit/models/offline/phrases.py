"""The sentences that the stand-in words itself, in English and Spanish: a prompt names the language of its session."""

import re
from dataclasses import dataclass

_LOCALE = re.compile(r"^Locale: es\b", re.M)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What the stand-in says in one language. Braces stand for what is put in."""

    no_answer: str
    no_answer_because: str
    """`{why}` is in English: models are told in English why there is no answer."""
    nothing_on: str
    failed: str
    left_out: str
    reserved: str
    nothing: str
    not_kept: str
    unknown: str
    needed: str
    needed_one_of: str
    well: str
    welcome: str
    goodbye: str
    hello: str
    agreed: str
    outside: str
    for_nobody: str
    only_looked_up: str
    unknown_day: str
    not_spoken_of: str
    not_narrowed: str
    held_back: str
    not_understood: str
    unavailable: str
    returned_nothing: str
    done: str
    answered_yes: str
    answered_no: str
    cut_off: str
    only_own: str


ENGLISH = Phrases(
    no_answer="I wasn't able to get an answer about {part} right now.",
    no_answer_because="I wasn't able to get an answer about {part}: {why}.",
    nothing_on="I wasn't able to get an answer from {part} to {request}.",
    failed="I wasn't able to get an answer right now.",
    left_out="I left out {part} for now; ask me again and I'll take it next.",
    reserved="One reservation about {part}: {note}.",
    nothing="I have nothing to report on that yet.",
    not_kept="I can't look up what was done: it is told where you asked for it.",
    unknown="I don't know {name}.",
    needed="For that I need the {name}.",
    needed_one_of="For that I need one of these: {options}.",
    well="I'm doing well, thank you! What can I help you with?",
    welcome="You're welcome! Let me know if there is anything else.",
    goodbye="Goodbye, and have a nice day!",
    hello="Hello! What can I help you with?",
    agreed="All right. Let me know if there is anything else.",
    outside="I'm sorry, that is outside what I can help with. You can ask about {topics}.",
    for_nobody="I can't help with {part}.",
    only_looked_up="I can only look things up here, and have done nothing else.",
    unknown_day="I know of nothing on {day}.",
    not_spoken_of="What I found says nothing about {words}. Here is what I have.",
    not_narrowed="What I found is not narrowed to {words}. Here is what I have.",
    held_back="I did nothing for this: it does not say the whole of what to do. Please say it in full.",
    not_understood="I did nothing for this: I cannot tell what {words} means for it. Please say in full what to do, "
    "and nothing else.",
    unavailable="I could not look up the {sought}: it is not available right now.",
    returned_nothing="Nothing was returned for the {sought}.",
    done="“{act}” was done; it said nothing else.",
    answered_yes="“{tool}” says yes.",
    answered_no="“{tool}” says no.",
    cut_off="The rest is too long, and was cut off.",
    only_own="I only see what is yours, and nothing of {name}.",
)
SPANISH = Phrases(
    no_answer="Ahora mismo no he podido obtener una respuesta sobre {part}.",
    no_answer_because="Ahora mismo no he podido obtener una respuesta sobre {part}.",
    nothing_on="No he podido obtener de {part} una respuesta a {request}.",
    failed="Ahora mismo no he podido obtener una respuesta.",
    left_out="De momento he dejado fuera {part}; vuelve a preguntármelo y lo miro enseguida.",
    reserved="Una reserva sobre {part}: {note}.",
    nothing="Todavía no tengo nada que decirte sobre eso.",
    not_kept="No puedo consultar lo que se hizo: está donde lo pediste.",
    unknown="No conozco {name}.",
    needed="Para eso me falta {name}.",
    needed_one_of="Para eso me falta uno de estos: {options}.",
    well="¡Muy bien, gracias! ¿En qué puedo ayudarte?",
    welcome="¡De nada! Avísame si necesitas algo más.",
    goodbye="¡Adiós, que tengas un buen día!",
    hello="¡Hola! ¿En qué puedo ayudarte?",
    agreed="Me alegro. Avísame si necesitas algo más.",
    outside="Lo siento, no puedo ayudarte con eso. Puedes preguntar sobre {topics}.",
    for_nobody="No puedo ayudarte con {part}.",
    only_looked_up="Aquí solo puedo consultar datos, y no he hecho nada más.",
    unknown_day="No sé de nada el {day}.",
    not_spoken_of="Lo que he encontrado no dice nada sobre {words}. Esto es lo que tengo.",
    not_narrowed="Lo que he encontrado no se limita a {words}. Esto es lo que tengo.",
    held_back="No he hecho nada: esto no dice entero lo que hay que hacer. Dilo entero, por favor.",
    not_understood="No he hecho nada: no sé qué significa {words} para ello. Di entero lo que hay que hacer, y nada "
    "más.",
    unavailable="No he podido consultar {sought}: ahora mismo no está disponible.",
    returned_nothing="No se ha recibido nada para {sought}.",
    done="Se ha hecho «{act}»; no dijo nada más.",
    answered_yes="«{tool}» dice que sí.",
    answered_no="«{tool}» dice que no.",
    cut_off="El resto es demasiado largo y se ha cortado.",
    only_own="Solo veo lo tuyo, y nada de {name}.",
)


def phrases_of(prompt: str) -> Phrases:
    """Returns the sentences in the language that a prompt names; English ones where it names none or another."""
    if _LOCALE.search(prompt):
        return SPANISH
    return ENGLISH
