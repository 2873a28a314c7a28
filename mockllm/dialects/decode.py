import msgspec
from mockllm.errors import RequestError
def decoder(t):
    d = msgspec.json.Decoder(t)
    def f(b):
        try: return d.decode(b)
        except msgspec.ValidationError as e: raise RequestError(str(e))
        except Exception as e: raise RequestError(str(e), code="invalid_json")
    return f
