"""What ``architectures`` in a file says where it and ``model_type`` disagree, or where the latter is not known.

Files are copied and edited, and the two fields then drift apart. The ``model_type`` is heeded, as the transformers library does; but
where it leaves fields unread that the named class would read, the class is. The classes are those of vLLM's model registry (0.33.0)
that generate text, those that it served before, and some of the transformers library.
"""

from __future__ import annotations

from collections.abc import Mapping

_CLASSES = """
afmoe: AfmoeForCausalLM
alice_ai: AliceAIForCausalLM
alpamayo2_super: Alpamayo2Super
apertus: ApertusForCausalLM
apertus1p5: Apertus1p5ForConditionalGeneration
aquila: AquilaForCausalLM AquilaModel
arcee: ArceeForCausalLM
arctic: ArcticForCausalLM
aria: AriaForConditionalGeneration
audioflamingo3: AudioFlamingo3ForConditionalGeneration
axk1: AXK1ForCausalLM
aya_vision: AyaVisionForConditionalGeneration
bagel: BagelForConditionalGeneration
baichuan: BaiChuanForCausalLM BaichuanForCausalLM
bailing_hybrid: BailingHybridForCausalLM BailingMoeLinearForCausalLM BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM
bailing_moe: BailingMoeForCausalLM
bailing_moe_v2: BailingMoeV2ForCausalLM
bailing_moe_v3_vl: BailingMoeV3VLForConditionalGeneration
bamba: BambaForCausalLM
bart: BartForConditionalGeneration BartModel
beam: BeamForCausalLM
bee: BeeForConditionalGeneration
blip-2: Blip2ForConditionalGeneration
bloom: BloomForCausalLM
chameleon: ChameleonForConditionalGeneration
chatglm: ChatGLMForConditionalGeneration ChatGLMModel GLM4VForCausalLM
cohere: CohereForCausalLM
cohere2: Cohere2ForCausalLM
cohere2_moe: Cohere2MoeForCausalLM
cohere2_vision: Cohere2VisionForConditionalGeneration
cohere_asr: CohereAsrForConditionalGeneration
cohere_compass: CohereCompassForConditionalGeneration
cosmos3_edge: Cosmos3EdgeForConditionalGeneration
cosmos3_omni: Cosmos3ForConditionalGeneration Cosmos3OmniForConditionalGeneration
cwm: CwmForCausalLM
dbrx: DbrxForCausalLM
deepseek: DeepseekForCausalLM
deepseek_ocr: DeepseekOCRForCausalLM
deepseek_ocr2: DeepseekOCR2ForCausalLM
deepseek_v2: DeepseekV2ForCausalLM
deepseek_v3: DeepseekV3ForCausalLM MistralLarge3ForCausalLM
deepseek_v32: DeepseekV32ForCausalLM
deepseek_v4: DeepseekV4ForCausalLM DeepseekV4ForConditionalGeneration
deepseek_v41: DeepseekV41ForCausalLM
deepseek_vl: DeepseekVLForConditionalGeneration
deepseek_vl_hybrid: DeepseekVLHybridForConditionalGeneration
deepseek_vl_v2: DeepseekVLV2ForCausalLM
diffusion_gemma: DiffusionGemmaForBlockDiffusion
domyn_edge: DomynEdgeForCausalLM
dory: DoryForCausalLM
dots1: Dots1ForCausalLM
dots3_note: Dots3NoteForCausalLM Dots3NoteForConditionalGeneration
dots_ocr: DotsOCRForCausalLM
eagle_2_5_vl: Eagle2_5_VLForConditionalGeneration
emu3: Emu3ForConditionalGeneration
ernie4_5: Ernie4_5ForCausalLM
ernie4_5_moe: Ernie4_5_MoeForCausalLM
ernie4_5_vl_moe: Ernie4_5_VLMoeForConditionalGeneration
exaone: ExaoneForCausalLM
exaone4: Exaone4ForCausalLM
exaone4_5: Exaone4_5_ForConditionalGeneration
exaone_moe: ExaoneMoEForCausalLM ExaoneMoeForCausalLM
falcon: FalconForCausalLM
falcon_h1: FalconH1ForCausalLM
falcon_mamba: FalconMambaForCausalLM
fast_vlm: FastVlmForConditionalGeneration
flex_olmo: FlexOlmoForCausalLM
flint: FlintForCausalLM
florence2: Florence2ForConditionalGeneration
fun_asr_nano: FunAsrNanoForConditionalGeneration
funaudiochat: FunAudioChatForConditionalGeneration
fuyu: FuyuForCausalLM
gemma: GemmaForCausalLM
gemma2: Gemma2ForCausalLM
gemma3: Gemma3ForConditionalGeneration
gemma3_text: Gemma3ForCausalLM
gemma3n: Gemma3nForConditionalGeneration
gemma3n_text: Gemma3nForCausalLM
gemma4: Gemma4ForConditionalGeneration
gemma4_text: Gemma4ForCausalLM
gemma4_unified: Gemma4UnifiedForConditionalGeneration
glm: GlmForCausalLM
glm4: Glm4ForCausalLM
glm46v: Glm46VForConditionalGeneration
glm4_moe: Glm4MoeForCausalLM
glm4_moe_lite: Glm4MoeLiteForCausalLM
glm4v: Glm4vForConditionalGeneration
glm4v_moe: Glm4vMoeForConditionalGeneration
glm5_next: Glm5NextForConditionalGeneration
glm5_next_text: Glm5NextForCausalLM
glm_moe_dsa: GlmMoeDsaForCausalLM
glm_ocr: GlmOcrForConditionalGeneration
glmasr: GlmAsrForConditionalGeneration
got_ocr2: GotOcr2ForConditionalGeneration
gpt2: GPT2LMHeadModel
gpt_bigcode: GPTBigCodeForCausalLM
gpt_neox: GPTNeoXForCausalLM
gpt_oss: GptOssForCausalLM
gptj: GPTJForCausalLM
granite: GraniteForCausalLM
granite4_vision: Granite4VisionForConditionalGeneration
granite_docling: GraniteDoclingForConditionalGeneration
granite_speech: GraniteSpeechForConditionalGeneration
granite_speech_plus: GraniteSpeechPlusForConditionalGeneration
granite_swa: GraniteSWAForCausalLM
granitemoe: GraniteMoeForCausalLM
granitemoe_swa: GraniteMoeSWAForCausalLM
granitemoehybrid: GraniteMoeHybridForCausalLM
granitemoeshared: GraniteMoeSharedForCausalLM
grok-1: Grok1ModelForCausalLM
grok-2: Grok1ForCausalLM
h2ovl_chat: H2OVLChatModel
hrm_text: HrmTextForCausalLM
hunyuan_v1_dense: HunYuanDenseV1ForCausalLM
hunyuan_v1_moe: HunYuanMoEV1ForCausalLM
hunyuan_vl: HunYuanVLForConditionalGeneration
hy_v3: HYV3ForCausalLM
hy_v4: HYV4ForCausalLM
hy_v4_vl: HYV4VLForConditionalGeneration
hyperclovax: HyperCLOVAXForCausalLM
hyperclovax_vision_v2: HCXVisionV2ForCausalLM HyperCLOVAXVisionV2ForConditionalGeneration
hyperclovax_vlm: HCXVisionForCausalLM
idefics2: Idefics2ForConditionalGeneration
idefics3: Idefics3ForConditionalGeneration
inkling2: Inkling2ForConditionalGeneration
inkling_mm_model: InklingForConditionalGeneration
inkling_text: InklingForCausalLM
instructblip: InstructBlipForConditionalGeneration
instructblipvideo: InstructBlipVideoForConditionalGeneration
internlm: InternLMForCausalLM
internlm2: InternLM2ForCausalLM
internlm3: InternLM3ForCausalLM
interns1: InternS1ForConditionalGeneration
interns1_pro: InternS1ProForConditionalGeneration
interns2_mobius: InternS2MobiusForConditionalGeneration
interns2_preview: InternS2PreviewForConditionalGeneration
internvl: InternVLForConditionalGeneration
internvl_chat: InternVLChatModel
iquestcoder: IQuestCoderForCausalLM
iquestloopcoder: IQuestLoopCoderForCausalLM
isaac: IsaacForConditionalGeneration
jais: JAISLMHeadModel
jais2: Jais2ForCausalLM
jamba: JambaForCausalLM
janus: JanusForConditionalGeneration
k2_horizon: K2HorizonForCausalLM
kanana-1.5-v: KananaVForConditionalGeneration
Keye: KeyeForConditionalGeneration
KeyeVL1_5: KeyeVL1_5ForConditionalGeneration
kimi_audio: MoonshotKimiaForCausalLM
kimi_k25: KimiK25ForConditionalGeneration Kimi_K25ForConditionalGeneration
kimi_k3: KimiK3ForConditionalGeneration
kimi_linear: KimiLinearForCausalLM
kimi_vl: KimiVLForConditionalGeneration
kolibri1: Kolibri1ForCausalLM
laguna: LagunaForCausalLM
lfm2: Lfm2ForCausalLM
lfm2_moe: Lfm2MoeForCausalLM
lfm2_vl: Lfm2VlForConditionalGeneration
lfm3_vl: Lfm3VlForConditionalGeneration
lighton_ocr: LightOnOCRForConditionalGeneration LightOnOcrForConditionalGeneration
llama: Fairseq2LlamaForCausalLM LLaMAForCausalLM LlamaForCausalLM
llama4: Llama4ForConditionalGeneration
llama4_text: Llama4ForCausalLM
Llama_Nemotron_Nano_VL: Llama_Nemotron_Nano_VL
llava: LlavaForConditionalGeneration MantisForConditionalGeneration Tarsier2ForConditionalGeneration TarsierForConditionalGeneration
llava_next: LlavaNextForConditionalGeneration
llava_next_video: LlavaNextVideoForConditionalGeneration
llava_onevision: LlavaOnevisionForConditionalGeneration
llava_onevision2: LlavaOnevision2ForConditionalGeneration
longcat_flash: LongcatFlashForCausalLM LongcatFlashNgramForCausalLM
mamba: MambaForCausalLM
mamba2: Mamba2ForCausalLM
mbart: MBartForConditionalGeneration
mellum: MellumForCausalLM
midashenglm: MiDashengLMModel
mimo: MiMoForCausalLM
mimo_v2: MiMoV2ForCausalLM
mimo_v2_flash: MiMoV2FlashForCausalLM
mimo_v2_omni: MiMoV2OmniForCausalLM
minicpm: MiniCPMForCausalLM
minicpm3: MiniCPM3ForCausalLM
minicpm_ocr: MiniCPMOcrForConditionalGeneration
minicpmo: MiniCPMO
minicpmv: MiniCPMV
minicpmv4_6: MiniCPMV4_6ForConditionalGeneration
minicpmv4_7: MiniCPMV4_7ForConditionalGeneration
minimax: MiniMaxForCausalLM
minimax_m1: MiniMaxM1ForCausalLM
minimax_m2: MiniMaxM2ForCausalLM
minimax_m3_text: MiniMaxM3SparseForCausalLM
minimax_m3_vl: MiniMaxM3SparseForConditionalGeneration
minimax_text_01: MiniMaxText01ForCausalLM
minimax_vl_01: MiniMaxVL01ForConditionalGeneration
ministral3: Ministral3ForCausalLM
mistral: GritLM MistralForCausalLM
mistral3: Mistral3ForConditionalGeneration
mistral_large4: MistralLarge4ForConditionalGeneration
mixtral: MixtralForCausalLM
mllama: MllamaForConditionalGeneration
molmo: MolmoForCausalLM
molmo2: Molmo2ForConditionalGeneration
moondream3: HfMoondream Moondream3ForCausalLM
moss_audio: MossAudioModel
moss_transcribe_diarize: MossTranscribeDiarizeForConditionalGeneration
motif: MotifForCausalLM
mpt: MPTForCausalLM MptForCausalLM
muse_glimmer: MuseGlimmerForConditionalGeneration
muse_glimmer_text: MuseGlimmerForCausalLM
muse_spark: MuseSparkForConditionalGeneration
musicflamingo: MusicFlamingoForConditionalGeneration
nanbeige: NanbeigeForCausalLM
nemo_speechlm: Nemotron3_5TranscribeForConditionalGeneration
nemotron: NemotronForCausalLM
nemotron-nas: DeciLMForCausalLM
nemotron_h: NemotronHForCausalLM
nemotron_h_omni: NemotronH_Omni_Reasoning_V3
nemotron_h_puzzle: NemotronHPuzzleForCausalLM
nemotron_parse: NemotronParseForConditionalGeneration
nemotron_parse3_5: RadioMBartPrefixForCausalLM
NemotronH_Nano_Omni_Reasoning_V3: NemotronH_Nano_Omni_Reasoning_V3
NemotronH_Nano_VL_V2: NemotronH_Nano_VL_V2
NemotronH_Super_Omni_Reasoning_V3: NemotronH_Super_Omni_Reasoning_V3
NVLM_D: NVLM_D
olmo: OlmoForCausalLM
olmo2: Olmo2ForCausalLM
olmo3: Olmo3ForCausalLM
olmo_hybrid: OlmoHybridForCausalLM
olmoe: OlmoeForCausalLM
omniasr: OmniASRForConditionalGeneration
opencua: OpenCUAForConditionalGeneration
openpangu_vl: OpenPanguVLForConditionalGeneration
openvla: OpenVLAForActionPrediction
opt: OPTForCausalLM
orion: OrionForCausalLM
ouro: OuroForCausalLM
ovis: Ovis
ovis2: Ovis2ForConditionalGeneration
ovis2_5: Ovis2_5
ovis2_6: Ovis2_6ForCausalLM
ovis2_6_moe: Ovis2_6_MoeForCausalLM
paddleocr_vl: PaddleOCRVLForConditionalGeneration
paligemma: PaliGemmaForConditionalGeneration
PanguEmbedded: PanguEmbeddedForCausalLM
PanguProMoEV2: PanguProMoEV2ForCausalLM
PanguUltraMoE: PanguUltraMoEForCausalLM
param2moe: Param2MoEForCausalLM
perception_lm: PerceptionLMForConditionalGeneration
persimmon: PersimmonForCausalLM
phi: PhiForCausalLM
phi3: Phi3ForCausalLM
phi3_v: Phi3VForCausalLM
phi3small: Phi3SmallForCausalLM
phi4-siglip: Phi4ForCausalLMV
phi4_multimodal: Phi4MultimodalForCausalLM
phi4flash: Phi4FlashForCausalLM
phi4mm: Phi4MMForCausalLM
phimoe: PhiMoEForCausalLM
pixtral: PixtralForConditionalGeneration
plamo2: Plamo2ForCausalLM
plamo3: Plamo3ForCausalLM
qianfan_ocr: QianfanOCRForConditionalGeneration
qwen: QWenLMHeadModel QwenVLForConditionalGeneration
qwen2: FireRedASR2ForConditionalGeneration Qwen2ForCausalLM
qwen2_5_omni: Qwen2_5OmniForConditionalGeneration Qwen2_5OmniModel
qwen2_5_omni_thinker: Qwen2_5OmniThinkerForConditionalGeneration
qwen2_5_vl: Qwen2_5_VLForConditionalGeneration
qwen2_audio: Qwen2AudioForConditionalGeneration
qwen2_moe: Qwen2MoeForCausalLM
qwen2_vl: Qwen2VLForConditionalGeneration
qwen3: FunASRForConditionalGeneration Qwen3ForCausalLM
qwen3_5: Qwen3_5ForConditionalGeneration
qwen3_5_moe: Qwen3_5MoeForConditionalGeneration
qwen3_5_moe_text: Qwen3_5MoeForCausalLM
qwen3_5_text: Qwen3_5ForCausalLM
qwen3_asr: Qwen3ASRForConditionalGeneration Qwen3ASRRealtimeGeneration
qwen3_moe: Qwen3MoeForCausalLM
qwen3_next: Qwen3NextForCausalLM
qwen3_omni_moe: Qwen3OmniMoeForConditionalGeneration
qwen3_omni_moe_thinker: Qwen3OmniMoeThinkerForConditionalGeneration
qwen3_vl: Qwen3VLForConditionalGeneration
qwen3_vl_moe: Qwen3VLMoeForConditionalGeneration
qwen4_exp: Qwen4ExpForConditionalGeneration
qwen4_exp_text: Qwen4ExpForCausalLM
r_4b: RForConditionalGeneration
RefinedWeb: RWForCausalLM
rnj1: Rnj1ForCausalLM
rwkv5: Rwkv5ForCausalLM
rwkv6: RWKV6ForCausalLM Rwkv6ForCausalLM
rwkv6qwen2: RWKV6Qwen2ForCausalLM
rwkv7: RWKV7ForCausalLM
sarvam_mla: SarvamMLAForCausalLM
sarvam_moe: SarvamMoEForCausalLM
seed_oss: SeedOssForCausalLM
skywork_chat: SkyworkR1VChatModel
smollm3: SmolLM3ForCausalLM
smolvlm: SmolVLMForConditionalGeneration
solar: SolarForCausalLM
stablelm: StableLmForCausalLM
stablelm_epoch: StableLMEpochForCausalLM
starcoder2: Starcoder2ForCausalLM
step1: Step1ForCausalLM
step3_text: Step3TextForCausalLM
step3_vl: Step3VLForConditionalGeneration
step3p5: Step3p5ForCausalLM
step3p5v: MMGPTStepRoboticsForCausalLM
step3p7: Step3p7ForConditionalGeneration
step4: Step4ForCausalLM
step5: Step5ForCausalLM
step5_vl: Step5ForConditionalGeneration
step_robotics: StepVLForConditionalGeneration
telechat: TeleChatForCausalLM
telechat2: TeleChat2ForCausalLM
telechat3: TeleChat3ForCausalLM Telechat3ForCausalLM
teleflm: TeleFLMForCausalLM
ultravox: UltravoxModel
umm: Cheers CheersForConditionalGeneration
unlimited_ocr: UnlimitedOCRForCausalLM UnlimitedOcrForConditionalGeneration
vaultgemma: VaultGemmaForCausalLM
vibevoice: VibeVoiceForConditionalGeneration
vibevoice_asr: VibeVoiceAsrForConditionalGeneration
video_llama_3: VideoLlama3ForConditionalGeneration
video_llava: VideoLlavaForConditionalGeneration
vipllava: VipLlavaForConditionalGeneration
vision-encoder-decoder: DonutForConditionalGeneration
voxtral: VoxtralForConditionalGeneration
voxtral_realtime: VoxtralRealtimeForConditionalGeneration VoxtralRealtimeGeneration
whisper: WhisperForConditionalGeneration
xverse: XverseForCausalLM
zamba2: Zamba2ForCausalLM
"""
"""Types, and the classes that go with each."""


def _by_class() -> dict[str, str]:
    lines = (line.partition(": ") for line in _CLASSES.strip().splitlines())
    return {name: model_type for model_type, _, names in lines for name in names.split()}


ARCHITECTURES: Mapping[str, str] = _by_class()


def sole_class(data: Mapping[str, object]) -> str | None:
    """Return the class that ``architectures`` names, if it is one."""
    names = data.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        return None
    return names[0]


def stated_architecture(data: Mapping[str, object]) -> str | None:
    """Return the ``model_type`` that ``architectures`` stands for, if it names one class that is known."""
    name = sole_class(data)
    return None if name is None else ARCHITECTURES.get(name)
